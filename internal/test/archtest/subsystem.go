// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// subsystems are the folders of internal/, lower ones first. A package of one
// uses packages of its own folder and of lower ones.
var subsystems = []string{"base", "host", "data", "resize", "control", "engine", "launch", "core", "top", "test"}

// subsystemOf returns the folder of internal/ in which a directory lies, or "".
func subsystemOf(dir string) string {
	parts := strings.Split(dir, "/")
	if len(parts) < 2 || parts[0] != "internal" {
		return ""
	}
	return parts[1]
}

// checkSubsystems holds the folders of internal/: which there are, that imports
// between them point down, and that doc.go of each lists its packages.
func checkSubsystems(t *tree) []string {
	var out []string
	for _, f := range t.files {
		from := subsystemOf(f.dir())
		if from == "" || !f.isGo() {
			continue
		}
		if !slices.Contains(subsystems, from) {
			out = append(out, f.problem(1, "internal/%s is no subsystem: move the package into one of %v, or add a folder to internal/test/archtest/subsystem.go", from, subsystems))
			continue
		}
		if f.isTest() {
			continue
		}
		for i, imp := range f.imports() {
			to := subsystemOf(strings.TrimPrefix(imp, Module+"/"))
			if slices.Index(subsystems, to) > slices.Index(subsystems, from) {
				out = append(out, f.problem(f.line(f.syntax.Imports[i]), "internal/%s must not import %s: internal/%s is a higher subsystem", from, imp, to))
			}
		}
	}
	return append(out, checkReadingOrder(t)...)
}

// readingOrder returns the names in the list of a package comment that stands
// under the line "In reading order:": a line each of a tab, the name, two spaces, text.
func readingOrder(doc string) []string {
	_, list, _ := strings.Cut(doc, "In reading order:\n\n")
	var names []string
	for line := range strings.Lines(list) {
		name, text, ok := strings.Cut(strings.TrimPrefix(line, "\t"), "  ")
		if !ok || !strings.HasPrefix(line, "\t") || strings.TrimSpace(text) == "" {
			break
		}
		names = append(names, name)
	}
	return names
}

// checkReadingOrder wants each package of a subsystem in the reading order of the
// subsystem's doc.go, and nothing else.
func checkReadingOrder(t *tree) []string {
	var out []string
	for _, sub := range subsystems {
		folder := "internal/" + sub
		var want []string
		for _, p := range t.packages() {
			if short, ok := strings.CutPrefix(p, folder+"/"); ok {
				want = append(want, short)
			}
		}
		i := slices.IndexFunc(t.files, func(f *file) bool { return f.path == path.Join(folder, "doc.go") })
		if i < 0 && len(want) == 0 {
			continue
		}
		if i < 0 {
			out = append(out, fmt.Sprintf("%s has no doc.go with its packages in reading order", folder))
			continue
		}
		got := readingOrder(t.files[i].syntax.Doc.Text())
		for _, p := range want {
			if !slices.Contains(got, p) {
				out = append(out, fmt.Sprintf("%s/doc.go does not list %s", folder, p))
			}
		}
		for _, p := range got {
			if !slices.Contains(want, p) {
				out = append(out, fmt.Sprintf("%s/doc.go lists %s, which is no package", folder, p))
			}
		}
	}
	return out
}
