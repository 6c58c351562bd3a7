// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// TestDrawing: docs/house.svg is the drawing of this tree.
func TestDrawing(t *testing.T) {
	rooms, err := read(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	if c := stack(rooms); c != nil {
		t.Fatalf("folders use each other in a circle: %v", c)
	}
	got, err := os.ReadFile("../../../docs/house.svg")
	if err != nil || !bytes.Equal(got, draw(rooms)) {
		t.Errorf("docs/house.svg is not the drawing of this tree (error %v): make house", err)
	}
	within, arrows := 0, 0
	for name, r := range rooms {
		if !strings.HasPrefix(name, "internal/") {
			continue
		}
		within++
		for to := range r.uses {
			if strings.HasPrefix(to, "internal/") {
				arrows++
			}
		}
	}
	t.Logf("internal: %d folders, %d arrows between them", within, arrows)
}

// TestFloors: each room stands above what it uses, and a circle is found.
func TestFloors(t *testing.T) {
	source := func(imports ...string) *fstest.MapFile {
		text := "package p\n"
		for _, i := range imports {
			text += "import _ \"" + module + "/" + i + "\"\n"
		}
		return &fstest.MapFile{Data: []byte(text)}
	}
	tree := fstest.MapFS{
		"internal/low/a/a.go":     source(),
		"internal/mid/b/b.go":     source("internal/low/a"),
		"high/h.go":               source("internal/mid/b", "internal/low/a"),
		"high/h_test.go":          source("internal/other/o"),
		"high/testdata/broken.go": {Data: []byte("no Go")},
	}
	rooms, err := read(tree)
	if err != nil {
		t.Fatal(err)
	}
	if c := stack(rooms); c != nil || len(rooms) != 3 || rooms["internal/low"].floor != 0 || rooms["internal/mid"].floor != 1 || rooms["high"].floor != 2 {
		t.Errorf("circle %v, rooms %v", c, rooms)
	}
	if direct(rooms, "high", "internal/low") || !direct(rooms, "high", "internal/mid") {
		t.Error("the arrow from high to low is implied by the two others, and that to mid is not")
	}
	tree["internal/low/a/c.go"] = source("high")
	if rooms, err = read(tree); err != nil {
		t.Fatal(err)
	}
	if c := stack(rooms); len(c) < 3 {
		t.Errorf("circle %v", c)
	}
}
