// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// The index in the package documentation links to what exists, and leaves out
// no function over slices and no method of Comm that programs call.
func TestIndex(t *testing.T) {
	set := token.NewFileSet()
	parsed, err := parser.ParseDir(set, ".", func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	// What is for packages of this module is in a file of its own.
	internal := map[string]bool{"Start": true}
	for name, f := range parsed["mpi"].Files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && name == "module.go" {
				internal[fn.Name.Name] = true
			}
		}
	}
	p := doc.New(parsed["mpi"], "gompi/mpi", 0)
	exists, calls := map[string]bool{}, map[string]bool{}
	add := func(prefix string, fs []*doc.Func) {
		for _, f := range fs {
			exists[prefix+f.Name] = true
			if (prefix == "" || prefix == "Comm.") && !internal[f.Name] {
				calls[prefix+f.Name] = true
			}
		}
	}
	values := func(vs []*doc.Value) {
		for _, v := range vs {
			for _, n := range v.Names {
				exists[n] = true
			}
		}
	}
	add("", p.Funcs)
	values(p.Consts)
	values(p.Vars)
	for _, x := range p.Types {
		exists[x.Name] = true
		add("", x.Funcs)
		add(x.Name+".", x.Methods)
		values(x.Consts)
		values(x.Vars)
	}
	linked := map[string]bool{}
	for _, m := range regexp.MustCompile(`\[([A-Z]\w*(?:\.\w+)?)\]`).FindAllStringSubmatch(p.Doc, -1) {
		if linked[m[1]] = true; !exists[m[1]] {
			t.Errorf("a link to %s, which does not exist", m[1])
		}
	}
	for name := range calls {
		prefix, base := "", name
		if i := strings.IndexByte(name, '.'); i >= 0 {
			prefix, base = name[:i+1], name[i+1:]
		}
		lower := strings.TrimPrefix(base, "I")
		started := prefix + strings.ToUpper(lower[:1]) + lower[1:]
		known := linked[name] || linked[started] || linked[prefix+strings.TrimSuffix(base, "Init")] || strings.HasPrefix(base, "Type")
		if !known {
			t.Errorf("%s is not in the index", name)
		}
	}
}
