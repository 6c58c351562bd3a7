// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// guides are the pages that lead a reader through the code.
var guides = []string{"docs/architecture.md", "docs/words.md", "CONTRIBUTING.md"}

// TestGuides: files and folders that the guides name exist, and architecture.md
// names each subsystem.
func TestGuides(t *testing.T) {
	tree, err := load(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range tree.files {
		paths = append(paths, "/"+f.path)
	}
	goFile := regexp.MustCompile(`[\w./]*\w\.go\b`)
	for _, g := range guides {
		text, err := os.ReadFile(filepath.Join(root(t), g))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range goFile.FindAllString(string(text), -1) {
			if strings.Contains(name, "NAME") || strings.HasPrefix(name, "_") {
				continue // a file that the reader is to write
			}
			if !slices.ContainsFunc(paths, func(p string) bool { return strings.HasSuffix(p, "/"+name) }) {
				t.Errorf("%s names %s, and there is no such file", g, name)
			}
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root(t), filepath.Dir(g), m[1])); err != nil {
				t.Errorf("%s: %v", g, err)
			}
		}
		if g != "docs/architecture.md" {
			continue
		}
		for _, sub := range subsystems {
			if !strings.Contains(string(text), "`internal/"+sub+"`") {
				t.Errorf("%s does not name internal/%s", g, sub)
			}
		}
	}
}

// TestMap: docs/design/README.md has a line for each package, and for nothing
// that is not there; each design page is named in one.
func TestMap(t *testing.T) {
	pages := filepath.Join(root(t), "docs", "design")
	text, err := os.ReadFile(filepath.Join(pages, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rooms []string
	for line := range strings.Lines(string(text)) {
		if head, _, ok := strings.Cut(strings.TrimPrefix(line, "- "), ": "); ok && head != line {
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(head, -1) {
				rooms = append(rooms, m[1])
			}
		}
	}
	tree, err := load(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	there := tree.packages()
	for _, p := range there {
		if one, _ := path.Match("examples/*", p); !one && !slices.Contains(rooms, p) {
			t.Errorf("%s has no line in docs/design/README.md", p)
		}
	}
	for i, r := range rooms {
		if !slices.Contains(there, r) || slices.Contains(rooms[:i], r) {
			t.Errorf("docs/design/README.md: there is no package %s, or it has two lines", r)
		}
	}
	files, err := filepath.Glob(filepath.Join(pages, "[0-9]*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d design pages, error %v", len(files), err)
	}
	for _, f := range files {
		if !strings.Contains(string(text), "]("+filepath.Base(f)+")") {
			t.Errorf("%s is not named in docs/design/README.md", filepath.Base(f))
		}
	}
	for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join(pages, m[1])); err != nil {
			t.Errorf("docs/design/README.md: %v", err)
		}
	}
}
