// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "gompi"

// room is a folder of the drawing: a subsystem of internal/, or a top folder.
type room struct {
	name     string
	packages []string // directories below the folder; "." is the folder's own package
	floor    int      // 0 is the lowest
	uses     map[string]int
}

// roomOf returns the folder that a package directory is drawn in.
func roomOf(dir string) string {
	parts := strings.SplitN(dir, "/", 3)
	if parts[0] == "internal" && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// read returns the rooms of the tree below fsys, with the number of imports from
// each to each. Tests do not count. Folders of tests are left out: they use everything.
func read(fsys fs.FS) (map[string]*room, error) {
	rooms := map[string]*room{}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); p == "bin" || p == "internal/test" || p == "mpitest" || n == "testdata" || p != "." && strings.ContainsAny(n[:1], "._") {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(p) != ".go" || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		src, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, src, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir := path.Dir(p)
		r := rooms[roomOf(dir)]
		if r == nil {
			r = &room{name: roomOf(dir), uses: map[string]int{}}
			rooms[r.name] = r
		}
		short := strings.TrimPrefix(strings.TrimPrefix(dir, r.name), "/")
		if short == "" {
			short = "."
		}
		if !slices.Contains(r.packages, short) {
			r.packages = append(r.packages, short)
		}
		for _, spec := range f.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if to, ours := strings.CutPrefix(imp, module+"/"); ours && roomOf(to) != r.name {
				r.uses[roomOf(to)]++
			}
		}
		return nil
	})
	return rooms, err
}

// stack gives each room its floor: one above the highest room that it uses. It
// returns a circle of rooms, if there is one.
func stack(rooms map[string]*room) (circle []string) {
	done := map[string]bool{}
	var place func(name string, path []string) int
	place = func(name string, path []string) int {
		r := rooms[name]
		switch {
		case r == nil:
			return -1
		case slices.Contains(path, name):
			circle = append(slices.Clone(path[slices.Index(path, name):]), name)
			return r.floor
		case done[name]:
			return r.floor
		}
		for to := range r.uses {
			r.floor = max(r.floor, 1+place(to, append(path, name)))
		}
		done[name] = true
		return r.floor
	}
	for name := range rooms {
		place(name, nil)
	}
	return circle
}

// direct reports whether no room between a and b makes the arrow from a to b
// redundant in a drawing.
func direct(rooms map[string]*room, a, b string) bool {
	for via := range rooms[a].uses {
		if via != b && reaches(rooms, via, b) {
			return false
		}
	}
	return true
}

// reaches reports whether a uses b, itself or through others.
func reaches(rooms map[string]*room, a, b string) bool {
	r := rooms[a]
	if r == nil {
		return false
	}
	if _, ok := r.uses[b]; ok {
		return true
	}
	for via := range r.uses {
		if reaches(rooms, via, b) {
			return true
		}
	}
	return false
}
