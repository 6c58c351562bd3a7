// SPDX-License-Identifier: Apache-2.0

// House draws the tree as docs/house.svg: each folder a box with its packages,
// and the imports between folders as arrows, lower folders at the bottom.
//
// Dark arrows are those that no longer way implies; all others are light.
// `make house` runs it; archtest fails when the drawing is not that of the tree.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: house TREE FILE.svg")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(tree, file string) error {
	rooms, err := read(os.DirFS(tree))
	if err != nil {
		return err
	}
	if c := stack(rooms); c != nil {
		return fmt.Errorf("folders use each other in a circle: %v", c)
	}
	return os.WriteFile(file, draw(rooms), 0o666)
}
