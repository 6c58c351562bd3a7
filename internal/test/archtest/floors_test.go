// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// house is a package whose files stand on floors: its doc.go lists them, lowest
// first, a line each, a tab and the file's name first. A file names what is on
// lower floors, and what is not is counted.
type house struct {
	dir string
	// up is how many names files may take from above, each counted once a file. It may
	// only become smaller.
	up int
}

var houses = []house{
	{dir: "internal/engine", up: 85},
}

// TestFloors: doc.go of a house lists its files, and what points up in it becomes
// no more.
func TestFloors(t *testing.T) {
	for _, h := range houses {
		in := &checker{root: root(t), fset: token.NewFileSet(), done: map[string]*types.Package{}}
		pkg, files, info := in.check(h.dir, false)
		floor := map[string]int{}
		for _, f := range files {
			if in.file(f) == "doc.go" {
				for line := range strings.Lines(f.Doc.Text()) {
					name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
					if strings.HasPrefix(line, "\t") && strings.HasSuffix(name, ".go") {
						floor[name] = len(floor) + 1
					}
				}
			}
		}
		type ref struct{ from, name string }
		up := map[ref]string{}
		for _, f := range files {
			from := in.file(f)
			if from != "doc.go" && floor[from] == 0 {
				t.Errorf("%s: doc.go does not say on which floor %s stands", h.dir, from)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok || info.Uses[id] == nil || info.Uses[id].Pkg() != pkg {
					return true
				}
				o := info.Uses[id]
				if of, name := in.file(o), owner(pkg, o); name != "" && floor[of] > floor[from] {
					up[ref{from, name}] = of
				}
				return true
			})
		}
		for name := range floor {
			if _, err := os.Stat(filepath.Join(in.root, h.dir, name)); err != nil {
				t.Errorf("%s/doc.go: %v", h.dir, err)
			}
		}
		if len(up) > h.up || testing.Verbose() {
			for r, of := range up {
				t.Logf("%s: %s of %s", r.from, r.name, of)
			}
		}
		if len(up) > h.up {
			t.Errorf("%s: files name %d things of floors above theirs (go test -v lists them), at most %d: move one down, or give it what it needs", h.dir, len(up), h.up)
		}
		t.Logf("%s: %d names from above", h.dir, len(up))
	}
}

// owner is the name of what a package declares, with that of its type; "" if it
// is local to a function.
func owner(pkg *types.Package, o types.Object) string {
	switch o := o.(type) {
	case *types.Func:
		if r := o.Origin().Signature().Recv(); r != nil {
			return path.Base(strings.TrimPrefix(r.Type().String(), "*")) + "." + o.Name()
		}
		return o.Name()
	case *types.Var:
		if o.IsField() {
			for _, name := range pkg.Scope().Names() {
				if st, ok := pkg.Scope().Lookup(name).Type().Underlying().(*types.Struct); ok {
					for i := range st.NumFields() {
						if st.Field(i) == o.Origin() {
							return name + "." + o.Name()
						}
					}
				}
			}
			return ""
		}
	}
	if o.Parent() != pkg.Scope() {
		return ""
	}
	return o.Name()
}

// checker checks types of packages of this module, with nothing of others: what
// is theirs stays unknown, and no rule asks for it.
type checker struct {
	root string
	fset *token.FileSet
	done map[string]*types.Package
}

func (c *checker) Import(p string) (*types.Package, error) {
	if pkg := c.done[p]; pkg != nil {
		return pkg, nil
	}
	if dir, ours := strings.CutPrefix(p, Module+"/"); ours {
		pkg, _, _ := c.check(dir, true)
		return pkg, nil
	}
	pkg := types.NewPackage(p, path.Base(p))
	pkg.MarkComplete()
	c.done[p] = pkg
	return pkg, nil
}

func (c *checker) check(dir string, outside bool) (*types.Package, []*ast.File, *types.Info) {
	at := filepath.Join(c.root, dir)
	found, err := build.ImportDir(at, 0)
	if err != nil {
		panic(err)
	}
	var files []*ast.File
	for _, name := range found.GoFiles {
		f, err := parser.ParseFile(c.fset, filepath.Join(at, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			panic(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: c, Error: func(error) {}, IgnoreFuncBodies: outside}
	pkg, _ := conf.Check(Module+"/"+dir, c.fset, files, info)
	c.done[Module+"/"+dir] = pkg
	return pkg, files, info
}

// file is the name of the file in which something stands.
func (c *checker) file(n interface{ Pos() token.Pos }) string {
	return filepath.Base(c.fset.Position(n.Pos()).Filename)
}
