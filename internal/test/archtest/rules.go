// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A rule looks at a tree and words what is wrong with it.
type rule struct {
	name  string
	check func(*tree) []string
}

var rules = []rule{
	{"imports", func(t *tree) []string { return checkImports(t, layers) }},
	{"unsafe", eachGo(checkUnsafe)},
	{"sleep", eachGo(checkSleep)},
	{"init", eachGo(checkInit)},
	{"global", eachGo(checkGlobals)},
	{"licence", each(checkLicence)},
	{"size", each(checkSize)},
	{"path", each(checkPaths)},
	{"doc", checkDocs},
	{"subsystem", checkSubsystems},
	{"docname", eachGo(checkDocNames)},
	{"language", eachGo(checkLanguage)},
	{"packagedoc", checkPackageDocs},
	{"filename", eachGo(checkFileNames)},
}

func each(check func(*file) []string) func(*tree) []string {
	return func(t *tree) []string {
		var out []string
		for _, f := range t.files {
			out = append(out, check(f)...)
		}
		return out
	}
}

func eachGo(check func(*file) []string) func(*tree) []string {
	return each(func(f *file) []string {
		if !f.isGo() {
			return nil
		}
		return check(f)
	})
}

// checkTable reports rows that are doubled or point up.
func checkTable(table []row) []string {
	var out []string
	var below []string
	for _, r := range table {
		if slices.Contains(below, r.pkg) {
			out = append(out, fmt.Sprintf("table: %s has two rows", r.pkg))
		}
		for _, p := range strings.Fields(r.may) {
			if !slices.Contains(below, p) {
				out = append(out, fmt.Sprintf("table: %s may import %s, which is no earlier row", r.pkg, p))
			}
		}
		below = append(below, r.pkg)
	}
	return out
}

// checkImports holds the table of layers and that of modules.
func checkImports(t *tree, table []row) []string {
	var out []string
	for _, f := range t.files {
		if !f.isGo() {
			continue
		}
		r, ok := rowOf(table, f.dir())
		if !ok {
			out = append(out, f.problem(1, "package %s is not in the import table: add a row to layers in internal/test/archtest/table.go", f.dir()))
			continue
		}
		for i, imp := range f.imports() {
			if why := forbidden(table, r, f, imp); why != "" {
				out = append(out, f.problem(f.line(f.syntax.Imports[i]), "%s must not import %s: %s", f.dir(), imp, why))
			}
		}
	}
	return out
}

// forbidden says why a file may not import imp, or "".
func forbidden(table []row, r row, f *file, imp string) string {
	first, _, _ := strings.Cut(imp, "/")
	switch {
	case first == Module:
		dir := strings.TrimPrefix(imp, Module+"/")
		switch {
		case names(r.may, dir):
			return ""
		case f.isTest() && (dir == f.dir() || reaches(table, r.pkg, dir)):
			return ""
		case f.isTest() && slices.Contains(testHelpers, dir) && !reaches(table, dir, f.dir()):
			return ""
		case f.isTest() && slices.Contains(testHelpers, dir) && strings.HasSuffix(f.syntax.Name.Name, "_test"):
			return "" // an external test may use what is built on its package
		}
		return "not in its row of internal/test/archtest/table.go"
	case r.pure && !f.isTest() && within(impure, imp):
		return "it is a pure package"
	case strings.Contains(first, "."):
		for _, m := range modules {
			if !within([]string{m.path}, imp) {
				continue
			}
			if f.isTest() || m.may == "*" || names(m.may, f.dir()) {
				return ""
			}
			return "not among the packages of this module in internal/test/archtest/table.go"
		}
		return "this module is not in internal/test/archtest/table.go (and docs/dependencies.md)"
	}
	return ""
}

// checkUnsafe keeps unsafe in files that say so in their name.
func checkUnsafe(f *file) []string {
	i := slices.Index(f.imports(), "unsafe")
	if i < 0 || strings.HasSuffix(f.path, "_unsafe.go") || strings.HasSuffix(f.path, "_unsafe_test.go") {
		return nil
	}
	return []string{f.problem(f.line(f.syntax.Imports[i]), "imports unsafe: only *_unsafe.go may")}
}

// checkSleep: a test that sleeps until something has happened fails on a slow
// machine and wastes time on a fast one.
func checkSleep(f *file) []string {
	if !f.isTest() {
		return nil
	}
	var out []string
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if isSelector(n, "time", "Sleep") && !f.excused(f.line(n), "sleep") {
			out = append(out, f.problem(f.line(n), "time.Sleep in a test: wait for the event, or state the reason: //archtest:sleep reason"))
		}
		return true
	})
	return out
}

// checkInit: nothing runs or registers itself because it was imported.
func checkInit(f *file) []string {
	var out []string
	for _, d := range f.syntax.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			out = append(out, f.problem(f.line(fn), "func init: make it a value that somebody passes"))
		}
	}
	return out
}

// checkGlobals finds package variables that are made to change: those of a
// type from sync or sync/atomic, channels, and what make or new gives. The
// library has no process-wide state.
func checkGlobals(f *file) []string {
	if f.isTest() {
		return nil
	}
	var out []string
	for _, d := range f.syntax.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			if (stateful(v.Type) || slices.ContainsFunc(v.Values, stateful)) && !f.excused(f.line(v), "global") {
				out = append(out, f.problem(f.line(v), "global state %s: put it into a value, or state the reason: //archtest:global reason", v.Names[0]))
			}
		}
	}
	return out
}

func stateful(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ChanType:
		return true
	case *ast.SelectorExpr:
		x, ok := e.X.(*ast.Ident)
		return ok && (x.Name == "sync" && !strings.HasPrefix(e.Sel.Name, "Once") || x.Name == "atomic")
	case *ast.IndexExpr:
		return stateful(e.X) // atomic.Pointer[T]
	case *ast.StarExpr:
		return stateful(e.X)
	case *ast.ArrayType:
		return stateful(e.Elt)
	case *ast.StructType:
		return slices.ContainsFunc(e.Fields.List, func(f *ast.Field) bool { return stateful(f.Type) })
	case *ast.CompositeLit:
		return stateful(e.Type)
	case *ast.UnaryExpr:
		return stateful(e.X)
	case *ast.CallExpr:
		id, ok := e.Fun.(*ast.Ident)
		return ok && (id.Name == "make" || id.Name == "new")
	}
	return false
}

// licence is the first line of every source file, after its comment marks.
const licence = "SPDX-License-Identifier: Apache-2.0"

func checkLicence(f *file) []string {
	n := 0
	if strings.HasPrefix(f.lines[0], "#!") && len(f.lines) > 1 {
		n = 1
	}
	if strings.Contains(f.lines[n], licence) {
		return nil
	}
	return []string{f.problem(n+1, "the first line is not %q", licence)}
}

const (
	mostLines  = 1000
	manyLines  = 500 // worth a look; reported by go test -v
	pathReason = "use os.TempDir, a flag, or state the reason: //archtest:path reason"
)

func checkSize(f *file) []string {
	if len(f.lines) <= mostLines {
		return nil
	}
	return []string{f.problem(mostLines+1, "%d lines, at most %d: cut it along its nouns", len(f.lines), mostLines)}
}

// machinePath is an absolute path that exists on somebody's machine only.
var machinePath = regexp.MustCompile(`(^|[^\w.$})*])/(work|home|tmp|root)/`)

func checkPaths(f *file) []string {
	if f.isTest() || f.path == "internal/test/archtest/rules.go" {
		return nil
	}
	var out []string
	for i, l := range f.lines {
		if machinePath.MatchString(l) && !f.excused(i+1, "path") {
			out = append(out, f.problem(i+1, "a path of one machine: %s", pathReason))
		}
	}
	return out
}

// checkDocs wants one package comment in each package.
func checkDocs(t *tree) []string {
	docs := make(map[string][]string)
	for _, f := range t.files {
		if f.isGo() && !f.isTest() && f.syntax.Doc.Text() != "" {
			docs[f.dir()] = append(docs[f.dir()], path.Base(f.path))
		}
	}
	var out []string
	for _, dir := range t.packages() {
		if d := docs[dir]; len(d) != 1 {
			out = append(out, fmt.Sprintf("%s: want one package comment, found %d %v", dir, len(d), d))
		}
	}
	return out
}

func isSelector(n ast.Node, pkg, name string) bool {
	s, ok := n.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}
