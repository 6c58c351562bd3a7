// SPDX-License-Identifier: Apache-2.0

package tuning

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	d := Default()
	if got, err := Parse(d.String()); err != nil || got != d {
		t.Errorf("%v, %v", got, err)
	}
	got, err := Parse("# measured\n\nnear push 100\nfar answer 0 # never\n")
	if d.Near.Push, d.Far.Answer = 100, 0; err != nil || got != d {
		t.Errorf("%v, %v", got, err)
	}
	if n := d.Smallest(); n != 512 {
		t.Errorf("least %d", n)
	}
	if n := (&Table{}).Smallest(); n != 0 {
		t.Errorf("least %d of none", n)
	}
	for text, want := range map[string]string{
		"near push":               "line 1 of the table: 2 words",
		"\nnear push x":           `line 2 of the table: "x" is not a number`,
		"near push -1":            "not a number of bytes from 0",
		"far push 99999999":       "to 16777216",
		"middle push 3":           "middle push is not a threshold",
		"near eager 3\nnear":      "near eager is not a threshold",
		"near push 1\nfar alone ": "line 2",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
