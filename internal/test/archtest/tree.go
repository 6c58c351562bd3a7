// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the habits of this code base that a program can
// check: which package may import which (table.go) and what a source file
// looks like (rules.go). Its test runs them over the whole tree.
//
// A line may break a rule for a reason, which it states: a comment at its end,
//
//	//archtest:RULE reason
//
// where RULE is sleep, path or global.
package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Module is the module's path: its packages are named Module/dir.
const Module = "gompi"

// file is a source file. syntax is nil if it is not Go.
type file struct {
	path   string // from the root of the tree, with slashes
	lines  []string
	syntax *ast.File
	fset   *token.FileSet
}

// tree is all files of a module that rules look at.
type tree struct{ files []*file }

// load reads the tree below fsys: Go files, and what else starts with a
// licence line. Directories that Go ignores (testdata, a leading dot or
// underscore) and bin are passed over; .ci is not.
func load(fsys fs.FS) (*tree, error) {
	t := new(tree)
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			ignored := name == "testdata" || p == "bin" || name != "." && strings.ContainsAny(name[:1], "._")
			if ignored && p != ".ci" {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !isSource(p) {
			return nil
		}
		src, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		f := &file{path: p, lines: strings.Split(strings.TrimSuffix(string(src), "\n"), "\n")}
		if path.Ext(p) == ".go" {
			f.fset = token.NewFileSet()
			f.syntax, err = parser.ParseFile(f.fset, p, src, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
		}
		t.files = append(t.files, f)
		return nil
	})
	return t, err
}

func isSource(p string) bool {
	switch path.Ext(p) {
	case ".go", ".s", ".c", ".h", ".sh":
		return true
	}
	return path.Base(p) == "Makefile" || path.Dir(p) == ".ci"
}

func (f *file) dir() string  { return path.Dir(f.path) }
func (f *file) isGo() bool   { return f.syntax != nil }
func (f *file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// imports returns the import paths of a Go file.
func (f *file) imports() []string {
	var out []string
	for _, spec := range f.syntax.Imports {
		p, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		out = append(out, p)
	}
	return out
}

// line returns the line number of a node.
func (f *file) line(n ast.Node) int { return f.fset.Position(n.Pos()).Line }

// excused reports whether line n (from 1) states a reason to break a rule.
func (f *file) excused(n int, rule string) bool {
	_, reason, found := strings.Cut(f.lines[n-1], "//archtest:"+rule+" ")
	return found && strings.TrimSpace(reason) != ""
}

// problem words a finding so that editors can jump to it.
func (f *file) problem(line int, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", f.path, line, fmt.Sprintf(format, args...))
}

// packages returns the directories that hold Go files other than tests.
func (t *tree) packages() []string {
	var out []string
	for _, f := range t.files {
		if f.isGo() && !f.isTest() {
			out = append(out, f.dir())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
