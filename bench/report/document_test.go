// SPDX-License-Identifier: Apache-2.0

package report

import (
	"os"
	"strings"
	"testing"
)

// Documents have a place for the tables of their commands, which is filled anew as often as
// one likes.
func TestTablesIntoDocument(t *testing.T) {
	for path, command := range map[string]string{
		"../../docs/results/redistribution.md": "gompibench redist --tables",
		"../../docs/results/near-and-far.md":   "make bench-near",
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		once, err := between(string(text), command, "\n## a table of 1M\n")
		if err != nil {
			t.Fatal(err)
		}
		twice, err := between(once, command, "\n## a table of 1M\n")
		if err != nil || once != twice || strings.Count(once, "## a table of 1M") != 1 {
			t.Errorf("%s: %v\n%s", path, err, twice)
		}
		if _, err := between(once, "another command", "x"); err == nil {
			t.Errorf("%s: another command's tables are put there", path)
		}
	}
}
