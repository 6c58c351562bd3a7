// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gompi/collectives"
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

func TestSimulate(t *testing.T) {
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
