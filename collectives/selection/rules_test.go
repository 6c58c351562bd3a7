// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"
	"strings"
	"testing"

	"gompi/collectives"
)

func TestParseRules(t *testing.T) {
	got, err := ParseRules("# measured\n\nbcast 8 65536 linear # flat\r\n  scan\t0 0 chain")
	want := []Rule{{collectives.OpBcast, 8, 65536, "linear"}, {collectives.OpScan, 0, 0, "chain"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := ParseRules(FormatRules(DefaultRules())); err != nil || !slices.Equal(got, DefaultRules()) {
		t.Errorf("the built-in rules do not survive: %v", err)
	}
}

func TestParseRulesErrors(t *testing.T) {
	for text, want := range map[string]string{
		"bcast 8 linear":                "line 1 of the rules: 3 words",
		"\nbcast 8 0 linear 9":          "line 2 of the rules: 5 words",
		"broadcast 8 0 linear":          `"broadcast"`,
		"bcast many 0 linear":           `"many" is no number of ranks`,
		"bcast -1 0 linear":             `"-1" is no number of ranks`,
		"bcast 3000000000 0 linear":     "no number of ranks",
		"bcast 8 64K linear":            `"64K" is no number of bytes`,
		"bcast 8 1e3 linear":            "no number of bytes",
		"bcast 0 0 bruck":               "there are:",
		"bcast 0 9223372036854775808 x": "no number of bytes",
	} {
		if _, err := ParseRules(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := ParseTable("alltoallv 0 100 direct"); err == nil || !strings.Contains(err.Error(), "not known on all ranks") {
		t.Errorf("a limit on local lengths: %v", err)
	}
}

// Rules that are given come first; the built-in ones decide the rest.
func TestParseTable(t *testing.T) {
	table, err := ParseTable("allreduce 4 0 ring\nbcast 16 1024 linear")
	if err != nil {
		t.Fatal(err)
	}
	plain := DefaultTable()
	calls(func(a collectives.Args, elemBytes int, commutative bool) {
		want := plain.Select(&a, elemBytes, commutative)
		switch {
		case a.Remote > 0:
		case a.Op == collectives.OpAllreduce && a.Size <= 4 && commutative:
			want = named(collectives.OpAllreduce, "ring")
		case a.Op == collectives.OpBcast && a.Size <= 16 && a.Count <= 128:
			want = named(collectives.OpBcast, "linear")
		}
		if got := table.Select(&a, elemBytes, commutative); got != want {
			t.Fatalf("%v selected for %+v, not %v", got, a, want)
		}
	})
}

func FuzzParseRules(f *testing.F) {
	f.Add(FormatRules(defaultRules[:20]))
	f.Add("bcast 8 65536 linear # flat\nscan 0 0 chain")
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := ParseRules(text)
		if err != nil {
			return
		}
		again, err := ParseRules(FormatRules(rules))
		if err != nil || !slices.Equal(again, rules) {
			t.Errorf("%v becomes %v, %v", rules, again, err)
		}
	})
}
