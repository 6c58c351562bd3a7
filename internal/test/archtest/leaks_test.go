// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// leaks are the exported names of the public packages that only packages of
// this module can use, as they take or give what lies below: of each handle one
// Core. The list may only become shorter, but for the Core
// of a new handle.
var leaks = map[string][]string{
	"mpi": {
		"Buf.Core", "Comm.Core", "Datatype.Core", "Group.Core", "Op.Core", "Process.Core", "Request.Core",
	},
	"mpi/proc":       nil,
	"mpi/value":      nil,
	"mam":            nil,
	"rma":            nil,
	"mpitest":        nil,
	"sessions":       nil,
	"sessions/adapt": nil,
	"sessions/dyn":   nil,
}

// TestLeaks: whoever reads the documentation of a public package finds no more
// names that a program cannot use than those in leaks.
func TestLeaks(t *testing.T) {
	tree, err := load(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	got, files := map[string][]string{}, map[string][]*file{}
	for _, f := range tree.files {
		if _, public := leaks[f.dir()]; public && f.isGo() && !f.isTest() {
			files[f.dir()] = append(files[f.dir()], f)
		}
	}
	for dir, list := range files {
		hidden := map[string]bool{}
		for _, f := range list {
			f.aliases(hidden)
		}
		for _, f := range list {
			got[dir] = append(got[dir], f.leaks(hidden)...)
		}
	}
	for pkg, may := range leaks {
		for _, name := range got[pkg] {
			if !slices.Contains(may, name) {
				t.Errorf("%s.%s takes or gives what only this module can name", pkg, name)
			}
		}
		for _, name := range may {
			if !strings.HasSuffix(name, ".Core") {
				t.Errorf("%s.%s is no Core of a handle", pkg, name)
			}
			if !slices.Contains(got[pkg], name) {
				t.Errorf("%s.%s does not leak: strike it out of the list", pkg, name)
			}
		}
	}
}

// internals are the names under which a file imports packages below internal.
func (f *file) internals() map[string]bool {
	below := map[string]bool{}
	for i, p := range f.imports() {
		if strings.Contains(p, "/internal/") {
			name := path.Base(p)
			if n := f.syntax.Imports[i].Name; n != nil {
				name = n.Name
			}
			below[name] = true
		}
	}
	return below
}

// aliases adds the unexported types of a file that are a type of a package below
// internal under another name.
func (f *file) aliases(hidden map[string]bool) {
	below := f.internals()
	for _, d := range f.syntax.Decls {
		d, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range d.Specs {
			t, ok := s.(*ast.TypeSpec)
			if !ok || t.Name.IsExported() {
				continue
			}
			if sel, ok := t.Type.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && below[x.Name] {
					hidden[t.Name.Name] = true
				}
			}
		}
	}
}

// leaks are the exported names of a file whose signature names a package below
// internal, or a hidden alias of a type there.
func (f *file) leaks(hidden map[string]bool) (names []string) {
	below := f.internals()
	note := func(name string, signature ast.Node) {
		leaks := false
		var inner func(ast.Node)
		look := func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field: // of a struct, an interface, or a signature
				if len(n.Names) > 0 && !slices.ContainsFunc(n.Names, (*ast.Ident).IsExported) && isStruct(signature, n) {
					return false
				}
			case *ast.ArrayType: // its length is a number
				inner(n.Elt)
				return false
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && below[x.Name] {
					leaks = true
				}
				return false
			case *ast.Ident:
				leaks = leaks || hidden[n.Name]
			}
			return true
		}
		inner = func(n ast.Node) { ast.Inspect(n, look) }
		inner(signature)
		if leaks && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if name := d.Name.Name; d.Recv == nil && d.Name.IsExported() {
				note(name, d.Type)
			} else if of := receiver(d); d.Name.IsExported() && ast.IsExported(of) {
				note(of+"."+name, d.Type)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						note(s.Name.Name, s.Type)
					}
				case *ast.ValueSpec:
					for i, n := range s.Names {
						switch {
						case !n.IsExported():
						case s.Type != nil:
							note(n.Name, s.Type)
						case i < len(s.Values):
							note(n.Name, typeOfValue(s.Values[i]))
						}
					}
				}
			}
		}
	}
	return names
}

// typeOfValue is the part of an expression that says of which type it is, as far
// as that is seen without its package.
func typeOfValue(x ast.Expr) ast.Expr {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return typeOfValue(x.X)
	case *ast.UnaryExpr:
		return typeOfValue(x.X)
	case *ast.CompositeLit:
		return x.Type
	case *ast.FuncLit:
		return x.Type
	case *ast.CallExpr:
		return x.Fun
	}
	return x
}

// isStruct reports whether a field stands in the struct that t is.
func isStruct(t ast.Node, field *ast.Field) bool {
	s, ok := t.(*ast.StructType)
	return ok && slices.Contains(s.Fields.List, field)
}

// receiver is the name of a method's type.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	x := d.Recv.List[0].Type
	for {
		switch y := x.(type) {
		case *ast.StarExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.IndexListExpr:
			x = y.X
		case *ast.Ident:
			return y.Name
		default:
			return ""
		}
	}
}
