// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gompi/mpitest"
)

// pages are what users read.
func pages(t *testing.T) map[string]string {
	names, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, name := range append(names, "../README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(name)] = string(text)
	}
	return texts
}

// snippet is one Go block of a page. A block that is no program says in a
// remark before it which variables it uses: <!-- with: comm *mpi.Comm, n int -->
var snippet = regexp.MustCompile("(?s)(?:<!-- with: ([^\n]*) -->\n)?```go\n(.*?)```\n")

var qualified = regexp.MustCompile(`\b([a-z]+)\.[A-Z]`)

// source is the snippet as a file.
func source(with, code string) (name, text string) {
	if strings.HasPrefix(code, "package ") {
		if strings.Contains(code, `"testing"`) {
			return "main_test.go", code
		}
		return "main.go", code
	}
	paths := map[string]string{"mpi": "gompi/mpi", "rma": "gompi/rma", "sessions": "gompi/sessions", "mam": "gompi/mam", "value": "gompi/mpi/value", "mpitest": "gompi/mpitest",
		"context": "context", "errors": "errors", "fmt": "fmt", "os": "os", "time": "time"}
	var imports strings.Builder
	for _, m := range qualified.FindAllStringSubmatch(with+"\n"+code, -1) {
		if path := paths[m[1]]; path != "" {
			fmt.Fprintf(&imports, "import %q\n", path)
			delete(paths, m[1])
		}
	}
	return "main.go", "package main\n" + imports.String() + "func main() {}\nfunc _(" + with + ") {\n" + code + "}\n"
}

// TestModuleOfItsOwn follows the README: what stands there as Go, and on the
// other pages, compiles in a new module, and the program runs. So do Build and
// Exec of package mpitest there.
func TestModuleOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	tool := func(args ...string) {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		// What gompi needs lies in the module cache, as its tests are running, and was
		// checked against its go.sum: nobody else is asked. With -trimpath, as all is built,
		// packages that are built already are not built again.
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GONOSUMDB=*", "GOWORK=off", "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "GOPROXY=off") {
			t.Skipf("not all modules are in the cache: %s", out)
		}
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	for page, text := range pages(t) {
		for i, m := range snippet.FindAllStringSubmatch(text, -1) {
			name, code := source(m[1], m[2])
			if page == "README.md" {
				put(name, code) // the program and its test
				continue
			}
			put(fmt.Sprintf("%s%d/%s", strings.TrimSuffix(page, ".md"), i, name), code)
		}
	}
	tool("mod", "init", "ring")
	tool("mod", "edit", "-replace", "gompi="+root)
	tool("mod", "tidy")
	tool("vet", "./...")
	tool("test", ".")
	tool("build", "-o", "ring", ".")
	tool("build", "-o", "gompirun", "gompi/cmd/gompirun") // as mpitest.Build does
	r := mpitest.Exec(t, 4, []string{filepath.Join(dir, "ring")})
	if r.Status != 0 || r.Stdout != "sum of all ranks: 6\n" {
		t.Errorf("%+v", r)
	}
}

// TestNamesInPages: what the pages call mpi.Something is there.
func TestNamesInPages(t *testing.T) {
	names := map[string]bool{}
	for pkg, dir := range map[string]string{"mpi": "../mpi", "rma": "../rma", "sessions": "../sessions", "mam": "../mam", "value": "../mpi/value", "mpitest": "../mpitest"} {
		for _, d := range declarations(t, dir) {
			for _, name := range declared(d) {
				names[pkg+"."+name] = true
			}
		}
	}
	mention := regexp.MustCompile(`\b(?:mpi|rma|sessions|mam|value|mpitest)\.[A-Z]\w*`)
	for page, text := range pages(t) {
		for i, line := range strings.Split(text, "\n") {
			for _, name := range mention.FindAllString(line, -1) {
				if !names[name] {
					t.Errorf("%s:%d: there is no %s", page, i+1, name)
				}
			}
		}
	}
}

// declarations are those of the package in a directory, without its tests.
func declarations(t *testing.T, dir string) (list []ast.Decl) {
	t.Helper()
	parsed, err := parser.ParseDir(token.NewFileSet(), dir, func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parsed {
		for _, f := range p.Files {
			list = append(list, f.Decls...)
		}
	}
	return list
}

// declared is what a declaration names in its package.
func declared(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}
