// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gompi/internal/base/version"
)

func TestPage(t *testing.T) {
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
	if err := run([]string{"page", in, "-o", out, "--title", "mine"}, nil, &stdout); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(page), "<h1>mine</h1>") || strings.Count(string(page), "<svg ") != 2 || stdout.Len() != 0 {
		t.Errorf("%v\n%s", err, page)
	}
	if err := run([]string{"page", in, "-"}, strings.NewReader(lines), &stdout); err != nil || !strings.Contains(stdout.String(), "<svg ") {
		t.Errorf("to standard output: %v", err)
	}
	if err := run([]string{"page", bad, "-o", filepath.Join(dir, "none")}, nil, &stdout); err == nil || !strings.Contains(err.Error(), bad+":3:") {
		t.Errorf("bad file: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a page was written in spite of the error")
	}
}

func TestFigure(t *testing.T) {
	const fig = `{"title":"halo","x":{"label":"iteration","linear":true},"y":{"label":"residual"},"series":[{"name":"a","x":[0,1,2],"y":[1,0.1,0.01]}]}`
	var svg strings.Builder
	if err := run([]string{"figure"}, strings.NewReader(fig), &svg); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg ", ">halo<", ">iteration<", ">residual<", ">a<", ">0.1<"} {
		if !strings.Contains(svg.String(), want) {
			t.Errorf("no %s in\n%s", want, svg.String())
		}
	}
	for in, want := range map[string]string{
		"{":                                 "standard input: unexpected EOF",
		"{}":                                "no point to draw",
		`{"series":[{"name":"a","x":[1]}]}`: `series "a" has 1 x values and 0 y values`,
	} {
		if err := run([]string{"figure", "-"}, strings.NewReader(in), &svg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", in, err, want)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, line := range []string{"", "page", "pages x", "figure a b", "page --nosuch"} {
		if err := run(strings.Fields(line), nil, nil); !errors.As(err, new(usageError)) {
			t.Errorf("%q: got %v", line, err)
		}
	}
	var help strings.Builder
	if err := run([]string{"--help"}, nil, &help); err != nil || !strings.Contains(help.String(), "--title") {
		t.Errorf("%v\n%s", err, help.String())
	}
}

func TestVersion(t *testing.T) {
	var out strings.Builder
	if err := run([]string{"--version"}, nil, &out); err != nil || !strings.HasPrefix(out.String(), "gompiplot "+version.Gompi()+", protocol ") {
		t.Errorf("%q, %v", out.String(), err)
	}
}
