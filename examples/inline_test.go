// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"go/ast"
	"go/parser"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// signature is how many results a function has, and how many arguments it takes at least
// and at most.
type signature struct{ results, least, most int }

// inlineCall is an assignment from a call in a line of a page: `st, err := request.Wait()`.
var inlineCall = regexp.MustCompile("`([a-z_&, ]+) := ([^`]+)`")

// TestInlineCalls: assignments in the text and the tables of the pages, which no snippet
// compiles, have as many variables and arguments as the functions of that name.
func TestInlineCalls(t *testing.T) {
	known := signatures(t)
	checked := 0
	for page, text := range pages(t) {
		for i, line := range strings.Split(text, "\n") {
			for _, m := range inlineCall.FindAllStringSubmatch(line, -1) {
				call, err := parser.ParseExpr(strings.ReplaceAll(m[2], "...", ""))
				c, ok := call.(*ast.CallExpr)
				if err != nil || !ok {
					continue // several statements, or abbreviated
				}
				name := calledName(c.Fun)
				vars, args := strings.Count(m[1], ",")+1, len(c.Args)
				fits := slices.ContainsFunc(known[name], func(s signature) bool {
					return s.results == vars && (strings.Contains(m[2], "...") || s.least <= args && args <= s.most)
				})
				if checked++; !fits {
					t.Errorf("%s:%d: %s: %s has %v", page, i+1, m[0], name, known[name])
				}
			}
		}
	}
	if checked < 25 {
		t.Errorf("only %d calls were checked", checked)
	}
}

// calledName is the name of the function or method that is called.
func calledName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.IndexExpr:
		return calledName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// signatures are those of the exported functions and methods of the public packages, by
// name.
func signatures(t *testing.T) map[string][]signature {
	known := map[string]map[signature]bool{}
	for _, dir := range []string{"../mpi", "../mpi/value", "../mpi/proc", "../rma", "../sessions", "../sessions/dyn", "../sessions/adapt", "../mam", "../mpitest"} {
		for _, d := range declarations(t, dir) {
			if d, ok := d.(*ast.FuncDecl); ok && d.Name.IsExported() {
				if known[d.Name.Name] == nil {
					known[d.Name.Name] = map[signature]bool{}
				}
				known[d.Name.Name][signatureOf(d.Type)] = true
			}
		}
	}
	all := map[string][]signature{}
	for name, s := range known {
		all[name] = slices.Collect(maps.Keys(s))
	}
	return all
}

func signatureOf(f *ast.FuncType) (s signature) {
	s.results = f.Results.NumFields()
	s.least, s.most = f.Params.NumFields(), f.Params.NumFields()
	if n := len(f.Params.List); n > 0 {
		if _, variadic := f.Params.List[n-1].Type.(*ast.Ellipsis); variadic {
			s.least, s.most = s.least-1, 1<<20
		}
	}
	return s
}
