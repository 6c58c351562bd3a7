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

func TestFind(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	t.Setenv("PATH", elsewhere)
	if p, err := findIn(dir, "gompirun"); err == nil {
		t.Errorf("found %s", p)
	}
	for _, d := range []string{elsewhere, dir} { // beside comes before PATH
		want := filepath.Join(d, "gompirun")
		if err := os.WriteFile(want, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if p, err := findIn(dir, "gompirun"); err != nil || p != want {
			t.Errorf("got %s, %v, want %s", p, err, want)
		}
	}
}
