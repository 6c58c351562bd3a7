// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root finds the module's directory above this one.
func root(t *testing.T) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test's directory")
		}
	}
}

// TestTree holds every rule over the whole tree.
func TestTree(t *testing.T) {
	tree, err := load(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(tree.packages(), "internal/test/archtest") {
		t.Fatalf("the tree does not hold this package: %v", tree.packages())
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, p := range r.check(tree) {
				t.Error(p)
			}
		})
	}
	for _, f := range tree.files {
		if len(f.lines) > manyLines {
			t.Logf("%s: %d lines, more than %d", f.path, len(f.lines), manyLines)
		}
	}
}

func TestTable(t *testing.T) {
	for _, p := range checkTable(layers) {
		t.Error(p)
	}
	for _, h := range testHelpers {
		if _, ok := rowOf(layers, h); !ok {
			t.Errorf("test helper %s has no row", h)
		}
	}
}

// TestModule: a replace directive would build here and nowhere else, and each
// module is one of the table.
func TestModule(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root(t), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range checkModule(string(b)) {
		t.Error(p)
	}
}

// TestLibraryIsLean asks the go command, which knows what the standard library
// imports.
func TestLibraryIsLean(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", Module+"/mpi")
	cmd.Dir = root(t)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -deps %s/mpi: %v\n%s", Module, err, stderr.String())
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, Module+"/mpi") || !slices.Contains(deps, "runtime") {
		t.Fatalf("go list gave %d packages without the library", len(deps))
	}
	for _, p := range tooHeavy(deps) {
		t.Errorf("%s/mpi links %s; find out why with: go mod why -m, or go list -deps -f '{{.ImportPath}} {{.Imports}}' %s/mpi", Module, p, Module)
	}
}

// TestRanksDrawNothing: of the programs that ranks may run.
func TestRanksDrawNothing(t *testing.T) {
	cmd := exec.Command("go", "list", "-f", `{{if eq .Name "main"}}{{.ImportPath}} {{join .Deps " "}}{{end}}`, "./...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list ./...: %v", err)
	}
	programs := 0
	for line := range strings.Lines(string(out)) {
		deps := strings.Fields(line)
		if !slices.Contains(deps, Module+"/mpi") {
			continue
		}
		programs++
		for _, p := range deps[1:] {
			if within(rankWithout, p) && !slices.Contains(rankMay[deps[0]], p) {
				t.Errorf("%s links %s: let gompiplot draw", deps[0], p)
			}
		}
	}
	if programs < 10 {
		t.Errorf("go list gave %d programs with the library", programs)
	}
}
