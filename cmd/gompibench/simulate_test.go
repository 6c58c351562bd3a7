// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gompi/collectives"
	"gompi/mpitest"
)

func TestParseSimulation(t *testing.T) {
	c, err := parseSimulation(strings.Fields("reduce --ranks 2,100000 --bytes 4K --alg binomial,ordered --root 1 --loggp 1,2,3,4 --per-node 8 --gamma 5 --plot --json"))
	if err != nil {
		t.Fatal(err)
	}
	m := &c.Machine
	if c.Op != collectives.OpReduce || !slices.Equal(c.Ranks, []int{2, 100000}) || !slices.Equal(c.Bytes, []int{4096}) ||
		!slices.Equal(c.Algorithms, []string{"binomial", "ordered"}) || c.Root != 1 || c.PerNode != 8 || !c.json ||
		c.plot != "simulate-reduce.svg" || m.Net.Latency != 1 || m.Net.PerByte != 0.004 || m.Gamma != 0.005 {
		t.Errorf("got %+v", c)
	}
	if c, err = parseSimulation([]string{"barrier", "--plot=x.svg"}); err != nil || c.plot != "x.svg" || c.Algorithms != nil {
		t.Errorf("got %+v, %v", c, err)
	}
	for line, want := range map[string]string{
		"":                            "want one operation, not 0; there are: barrier bcast",
		"bcast reduce":                "want one operation, not 2",
		"broadcast":                   `no collective is called "broadcast"`,
		"bcast --ranks 0":             "--ranks",
		"bcast --ranks 5,x":           "--ranks",
		"bcast --ranks 99999999":      "--ranks",
		"bcast --bytes 8x":            `size "8x"`,
		"bcast --loggp 1,2,3":         "--loggp",
		"bcast --node-loggp 1,2,3,-4": "--node-loggp",
		"bcast --trace --json":        "--trace",
		"bcast --trace --plot":        "--trace",
		"bcast --plot --ranks 2,4":    "single value",
		"bcast --nosuch":              "unknown flag",
	} {
		if _, err := parseSimulation(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", line, err, want)
		}
		if err := simulate(strings.Fields(line), nil); !errors.As(err, new(usageError)) {
			t.Errorf("%q: exit status is not 2: %v", line, err)
		}
	}
}

// withPlotter puts gompiplot into PATH.
func withPlotter(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(mpitest.Build(t, "gompi/cmd/gompiplot"), filepath.Join(dir, "gompiplot")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestSimulate(t *testing.T) {
	withPlotter(t)
	file := filepath.Join(t.TempDir(), "x.svg")
	run := func(line string) string {
		t.Helper()
		var b strings.Builder
		if err := simulate(strings.Fields(line), &b); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		return b.String()
	}
	text := run("allreduce --ranks 1000 --bytes 8 --alg doubling,ring --plot=" + file)
	if !strings.Contains(text, " doubling ") || !strings.Contains(text, " ring ") || strings.Contains(text, "   250 ") || !strings.HasSuffix(text, "plot: "+file+"\n") {
		t.Error(text)
	}
	// The single point became a curve from 3 ranks on.
	if svg, err := os.ReadFile(file); err != nil || !bytes.Contains(svg, []byte(">ranks<")) || !bytes.Contains(svg, []byte(">4<")) {
		t.Errorf("%v\n%s", err, svg)
	}
	if text := run("barrier --ranks 4,8 --json"); strings.Count(text, "\n") != strings.Count(text, `{"bench":"simulate","op":"barrier"`) || text == "" {
		t.Error(text)
	}
	if text := run("bcast --ranks 3 --bytes 10 --alg linear --trace"); strings.Count(text, "send 10b") != 2 {
		t.Error(text)
	}
	help := run("--help")
	for _, want := range []string{"--loggp", "--plot", "--trace", "operations: barrier bcast", "gompibench simulate allreduce"} {
		if !strings.Contains(help, want) {
			t.Errorf("help lacks %q", want)
		}
	}
}

// TestPlotter: who has no gompiplot is told where it comes from.
func TestPlotter(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	file := filepath.Join(dir, "x.svg")
	err := simulate([]string{"barrier", "--ranks", "4", "--plot=" + file}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "no gompiplot in ") || !strings.Contains(err.Error(), "go build gompi/cmd/gompiplot") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("there is a plot")
	}
	if err := writeReport([]string{"x.json"}); err == nil || !strings.Contains(err.Error(), "no gompiplot in ") {
		t.Errorf("got %v", err)
	}
}

func TestReport(t *testing.T) {
	bench := mpitest.Build(t, "gompi/cmd/gompibench")
	withPlotter(t)
	c := exec.Command(bench, "report", "--title", "mine", "-")
	c.Stdin = strings.NewReader(`{"bench":"latency","transport":"shm","ranks":2,"bytes":8,"usec":0.1,"MBps":80}`)
	page, err := c.CombinedOutput()
	if err != nil || !bytes.Contains(page, []byte("<h1>mine</h1>")) {
		t.Errorf("%v\n%s", err, page)
	}
}

func TestProgressBar(t *testing.T) {
	var b strings.Builder
	bar := progressBar{on: true, w: &b}
	bar.show("x", 1, 2)
	bar.clear()
	bar.clear()
	want := "\r\x1b[K[############............] 1 of 2: x\r\x1b[K"
	if b.String() != want {
		t.Errorf("%q", b.String())
	}
	off := progressBar{w: &b}
	off.show("y", 0, 0)
	off.clear()
	if b.String() != want {
		t.Errorf("%q", b.String())
	}
}
