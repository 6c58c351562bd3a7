// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"gompi/bench"
)

func TestParse(t *testing.T) {
	c, err := parse(strings.Fields("mbw --bytes 8,4K --iters 10 --json --goroutines 3 --msec 20 --np 4 --progress --transport tcp"))
	if err != nil {
		t.Fatal(err)
	}
	want := bench.Options{Bytes: []int{8, 4096}, Iters: 10, Time: 20 * time.Millisecond, Goroutines: 3, Transport: "tcp"}
	if c.bench.Name != "mbw" || !c.json || !c.progress || c.np != 4 || !reflect.DeepEqual(c.opt, want) {
		t.Errorf("got %+v", c)
	}
	if c, err = parse(strings.Fields("get --target streaming --given")); err != nil || c.opt.Target != bench.Streaming || !c.opt.Given {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err = parse([]string{"latency"}); err != nil || c.opt.Transport != "" || c.opt.Bytes != nil || c.np != 2 || c.opt.Time != bench.DefaultTime {
		t.Errorf("got %+v, %v", c, err)
	}
	for line, want := range map[string]string{
		"":                     "which benchmark",
		"nosuch":               `no benchmark "nosuch"`,
		"bw extra":             `unexpected argument "extra"`,
		"bw --bytes 8x":        `size "8x"`,
		"bw --msec 0":          "--msec 0",
		"bw --np 1":            "--np 1",
		"bw --nosuch":          "unknown flag",
		"bw --iters manyyears": "manyyears",
	} {
		if _, err := parse(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", line, err, want)
		}
	}
	if _, err := parse([]string{"--help"}); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
}

func TestUsageNamesEverything(t *testing.T) {
	var b strings.Builder
	if err := usage(&b); err != nil {
		t.Fatal(err)
	}
	for _, x := range bench.All() {
		if !strings.Contains(b.String(), "\n  "+x.Name+" ") {
			t.Errorf("help lacks %s", x.Name)
		}
	}
	for _, flag := range []string{"--bytes", "--iters", "--json", "--goroutines", "--target", "--given", "report"} {
		if !strings.Contains(b.String(), flag) {
			t.Errorf("help lacks %s", flag)
		}
	}
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	in, out, bad := filepath.Join(dir, "in.json"), filepath.Join(dir, "out.html"), filepath.Join(dir, "bad.json")
	lines := `{"bench":"latency","transport":"shm","ranks":2,"bytes":8,"usec":0.1,"MBps":80}
{"bench":"latency","transport":"shm","ranks":2,"bytes":64,"usec":0.2,"MBps":320}
`
	for name, text := range map[string]string{in: lines, bad: lines + "{\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var stdout strings.Builder
	if err := writeReport([]string{in, "-o", out, "--title", "mine"}, &stdout); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(page), "<h1>mine</h1>") || strings.Count(string(page), "<svg ") != 2 || stdout.Len() != 0 {
		t.Errorf("%v\n%s", err, page)
	}
	if err := writeReport([]string{in, in}, &stdout); err != nil || !strings.Contains(stdout.String(), "<svg ") {
		t.Errorf("to standard output: %v", err)
	}
	if err := writeReport([]string{bad, "-o", filepath.Join(dir, "none")}, &stdout); err == nil || !strings.Contains(err.Error(), bad+":3:") {
		t.Errorf("bad file: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a page was written in spite of the error")
	}
	if err := writeReport(nil, &stdout); !errors.As(err, new(usageError)) {
		t.Errorf("no file: %v", err)
	}
}

func TestFindGompirun(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	t.Setenv("PATH", elsewhere)
	if p, err := findGompirun(dir); err == nil {
		t.Errorf("found %s", p)
	}
	for _, d := range []string{elsewhere, dir} { // beside comes before PATH
		want := filepath.Join(d, "gompirun")
		if err := os.WriteFile(want, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if p, err := findGompirun(dir); err != nil || p != want {
			t.Errorf("got %s, %v, want %s", p, err, want)
		}
	}
}
