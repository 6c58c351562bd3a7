// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"os"
	"slices"
	"strings"
	"testing"

	"gompi/collectives/selection"
)

// The table of algorithms in the design note has the names of the code.
func TestDesignNote(t *testing.T) {
	note, err := os.ReadFile("../../docs/design/005-schedules.md")
	if err != nil {
		t.Fatal(err)
	}
	var noted, have []string
	var ops []string
	_, table, _ := strings.Cut(string(note), "| operation | name |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, line := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(line, "|")
		if op := strings.TrimSpace(cells[1]); op != "" {
			ops = strings.Split(op, ", ")
		}
		for _, op := range ops {
			for name := range strings.SplitSeq(strings.TrimSpace(cells[2]), ", ") {
				noted = append(noted, op+"/"+name)
			}
		}
	}
	for _, g := range selection.All() {
		if !g.Inter && !g.TwoLevel {
			have = append(have, g.String())
		}
	}
	slices.Sort(noted)
	slices.Sort(have)
	for _, name := range have {
		if !slices.Contains(noted, name) {
			t.Errorf("%s is not noted", name)
		}
	}
	for _, name := range noted {
		if !slices.Contains(have, name) {
			t.Errorf("%s is noted and does not exist", name)
		}
	}
}
