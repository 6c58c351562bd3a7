// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const head = "// SPDX-License-Identifier: Apache-2.0\n\n"

// TestRules breaks each rule in a small tree, and keeps it in another.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		rule, path, source string
		want               string // part of the only problem; "" is none
	}{
		{"imports", "mpi/a.go", `package mpi; import _ "gompi/internal/engine"`, ""},
		{"imports", "internal/base/wire/a.go", `package wire; import _ "gompi/mpi"`, "internal/base/wire must not import gompi/mpi: not in its row"},
		{"imports", "launcher/a.go", `package launcher; import _ "gompi/internal/engine"`, "must not import gompi/internal/engine"},
		{"imports", "collectives/a.go", `package collectives; import _ "gompi/internal/engine/match"`, "must not import"},
		{"imports", "internal/engine/match/a.go", `package match; import _ "time"`, "it is a pure package"},
		{"imports", "internal/engine/match/a.go", `package match; import _ "golang.org/x/sys/unix"`, "it is a pure package"},
		{"imports", "internal/engine/match/a_test.go", `package match; import _ "time"`, ""},
		{"imports", "internal/new/a.go", `package new`, "add a row to layers in internal/test/archtest/table.go"},
		{"imports", "examples/new/main.go", `package main; import _ "gompi/mpi"`, ""},
		{"imports", "examples/new/main.go", `package main; import _ "gompi/internal/engine"`, "must not import"},
		{"imports", "examples/new/part/a.go", `package part`, "not in the import table"},
		{"imports", "mpi/a.go", `package mpi; import _ "github.com/spf13/pflag"`, "not among the packages of this module"},
		{"imports", "mpi/a.go", `package mpi; import _ "golang.org/x/sys/unix"`, ""},
		{"imports", "mpi/a.go", `package mpi; import _ "example.org/x"`, "this module is not in"},
		{"imports", "mpi/a.go", `package mpi; import _ "pgregory.net/rapid"`, "not among the packages"},
		{"imports", "mpi/a_test.go", `package mpi; import _ "pgregory.net/rapid"`, ""},
		{"imports", "transport/shm/a_test.go", `package shm; import _ "gompi/transport/transporttest"`, ""},
		{"imports", "internal/engine/a_test.go", `package engine; import _ "gompi/transport/inproc"`, ""},
		{"imports", "internal/engine/a_test.go", `package engine; import _ "gompi/mpitest"`, "must not import gompi/mpitest"},
		{"imports", "mpi/a_test.go", `package mpi_test; import _ "gompi/mpitest"`, ""},
		{"imports", "mpi/a_test.go", `package mpi_test; import _ "gompi/launcher"`, "must not import"},
		{"imports", "mpi/a_test.go", `package mpi_test; import _ "gompi/mpi"`, ""},
		{"imports", "internal/engine/a_test.go", `package engine; import _ "gompi/internal/host/cgroup"`, ""}, // through wait

		{"unsafe", "mpi/a.go", `package mpi; import _ "unsafe"`, "only *_unsafe.go may"},
		{"unsafe", "mpi/a_test.go", `package mpi; import _ "unsafe"`, "only *_unsafe.go may"},
		{"unsafe", "mpi/a_unsafe.go", `package mpi; import _ "unsafe"`, ""},
		{"unsafe", "mpi/a_unsafe_test.go", `package mpi; import _ "unsafe"`, ""},

		{"sleep", "mpi/a_test.go", "package mpi\nimport \"time\"\nfunc f() { time.Sleep(1) }", "a_test.go:5: time.Sleep in a test"},
		{"sleep", "mpi/a_test.go", "package mpi\nimport \"time\"\nvar f = time.Sleep", "time.Sleep in a test"},
		{"sleep", "mpi/a_test.go", "package mpi\nimport \"time\"\nfunc f() { time.Sleep(1) } //archtest:sleep", "time.Sleep in a test"},
		{"sleep", "mpi/a_test.go", "package mpi\nimport \"time\"\nfunc f() { time.Sleep(1) } //archtest:sleep a slow peer", ""},
		{"sleep", "mpi/a.go", "package mpi\nimport \"time\"\nfunc f() { time.Sleep(1) }", ""},

		{"init", "mpi/a.go", "package mpi; func init() {}", "func init"},
		{"init", "mpi/a_test.go", "package mpi; func init() {}", "func init"},
		{"init", "mpi/a.go", "package mpi; type t int; func (t) init() {}", ""},

		{"global", "mpi/a.go", "package mpi; import \"sync\"; var mu sync.Mutex", "global state mu"},
		{"global", "mpi/a.go", "package mpi; import \"sync\"; var s struct { sync.Mutex; n int }", "global state s"},
		{"global", "mpi/a.go", "package mpi; import \"sync/atomic\"; var a, b [4]atomic.Pointer[int]", "global state a"},
		{"global", "mpi/a.go", "package mpi; var m = make(map[int]int)", "global state m"},
		{"global", "mpi/a.go", "package mpi; var c chan int", "global state c"},
		{"global", "mpi/a.go", "package mpi; import \"sync\"; var p = &sync.Pool{}", "global state p"},
		{"global", "mpi/a.go", "package mpi; import \"sync\"; var c sync.Map //archtest:global a cache of what types never change", ""},
		{"global", "mpi/a.go", "package mpi; import \"errors\"; var e = errors.New(\"e\"); var t = []int{1}; func f() { var c chan int; _ = c }", ""},

		{"licence", "mpi/a.go", "package mpi", ""},
		{"licence", ".ci/run", "#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\n", ""},
		{"licence", ".ci/run", "#!/bin/bash\n", "the first line is not"},
		{"licence", "bench/peers/a.c", "int x;\n", "the first line is not"},
		{"licence", "bench/peers/data.csv", "1,2\n", ""},

		{"size", "mpi/a.go", "package mpi" + strings.Repeat("\n", mostLines-2), ""},
		{"size", "mpi/a.go", "package mpi" + strings.Repeat("\n//", mostLines), "cut it along its nouns"},

		{"path", "mpi/a.go", "package mpi; const p = \"/home/me/x\"", "a path of one machine"},
		{"path", "mpi/a.go", "package mpi\n// see /work/main/x\n", "a.go:4: a path of one machine"},
		{"path", "Makefile", "all:\n\tgo build -o /tmp/x\n", "a path of one machine"},
		{"path", "mpi/a.go", "package mpi; const p = \"net/work/x\" // ./tmp/ $HOME/tmp/", ""},
		{"path", "mpi/a.go", "package mpi; const p = \"/tmp/x\" //archtest:path the lock file's name is a contract", ""},
		{"path", "mpi/a_test.go", "package mpi; const p = \"/tmp/x\"", ""},

		{"subsystem", "internal/odd/a/a.go", "package a", "internal/odd is no subsystem"},
		{"subsystem", "internal/core/a.go", `package core; import _ "gompi/internal/engine"`, ""},
		{"subsystem", "internal/core/a.go", `package core; import _ "gompi/internal/top"`, "internal/top is a higher subsystem"},
		{"subsystem", "internal/top/screen/a.go", `package screen`, "internal/top has no doc.go"},
		{"subsystem", "internal/base/doc.go", "// Package base is.\n//\n// In reading order:\n//\n//\twire  names\npackage base", "lists wire, which is no package"},

		{"docname", "mpi/a.go", "package mpi\n// expose does.\nfunc register() {}", `the comment of register begins with "expose"`},
		{"docname", "mpi/a.go", "package mpi\n// A Request is.\ntype Request int\n// registers: done.\nfunc (Request) register() {}", ""},
		{"docname", "mpi/a_test.go", "package mpi\n// expose does.\nfunc register() {}", ""},

		{"language", "mpi/a.go", "package mpi\n// n is the how manyth.\nvar n int", `"manyth" in a comment`},
		{"language", "mpi/a.go", "package mpi\n// It waits for\n// who does not read.\nvar n int", `"for who" in a comment`},
		{"language", "mpi/a.go", "package mpi\n// It ends. Who waits gets an error.\nvar n int", "begin with a noun"},
		{"language", "mpi/a.go", "package mpi\n// Ranks that wait get an error. Who am I?\nvar n int", ""},

		{"filename", "mpi/again.go", "package mpi", "is no noun"},
		{"filename", "mpi/late_linux.go", "package mpi", "is no noun"},
		{"filename", "mpi/late_test.go", "package mpi", ""},
		{"filename", "mpi/latency.go", "package mpi", ""},

		{"packagedoc", "mpi/a.go", "// Package mpi is\n// more than\n// a name.\npackage mpi", ""},
		{"packagedoc", "mpi/a.go", "// Package mpi is.\npackage mpi", "has 1 lines, at least 3"},
		{"packagedoc", "mpi/a.go", "// Package other is\n// more than\n// a name.\npackage mpi", "does not begin with"},

		{"doc", "mpi/a.go", "// Package mpi is.\npackage mpi", ""},
		{"doc", "mpi/a.go", "package mpi", "mpi: want one package comment, found 0"},
		{"doc", "mpi/a_test.go", "package mpi", ""},
	} {
		t.Run(c.rule+"/"+c.path, func(t *testing.T) {
			src := c.source
			if strings.HasSuffix(c.path, ".go") {
				src = head + src
			}
			got := run(t, c.rule, fstest.MapFS{c.path: {Data: []byte(src)}})
			if c.want == "" && len(got) != 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
				t.Errorf("%s:\n%s\ngot %q, want %q", c.path, src, got, c.want)
			}
		})
	}
}

// run applies a rule to a tree.
func run(t *testing.T, name string, fsys fstest.MapFS) []string {
	t.Helper()
	tree, err := load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(rules, func(r rule) bool { return r.name == name })
	if i < 0 {
		t.Fatalf("no rule %q", name)
	}
	return rules[i].check(tree)
}

func TestTwoPackageComments(t *testing.T) {
	got := run(t, "doc", fstest.MapFS{
		"mpi/a.go":          {Data: []byte(head + "// Package mpi is.\npackage mpi")},
		"mpi/b.go":          {Data: []byte(head + "// Package mpi is more.\npackage mpi")},
		"mpi/testdata/c.go": {Data: []byte("not Go")},
		".git/d.go":         {Data: []byte("not Go")},
	})
	if want := "[mpi: want one package comment, found 2 [a.go b.go]]"; fmt.Sprint(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBadTables(t *testing.T) {
	got := checkTable([]row{{pkg: "a"}, {pkg: "b", may: "a c"}, {pkg: "c", may: "c"}, {pkg: "a"}})
	want := []string{"b may import c", "c may import c", "a has two rows"}
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
}

func TestBadModules(t *testing.T) {
	got := checkModule(`module gompi

go 1.26.0

require golang.org/x/sys v0.1.0
require (
	github.com/spf13/pflag v1.0.0
	example.org/other v1.0.0 // indirect
)

// replace example.org/a => ../a
replace golang.org/x/sys => ../sys
replace (
	pgregory.net/rapid => ../rapid
)
`)
	want := []string{"go.mod:8: example.org/other", "go.mod:12: replace", "go.mod:14: replace"}
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
	heavy := tooHeavy([]string{"fmt", "net/http", "net/http/internal", "net/httptest", "gompi/mpi", "encoding/gob"})
	if fmt.Sprint(heavy) != "[net/http net/http/internal encoding/gob]" {
		t.Errorf("too heavy: %q", heavy)
	}
}
