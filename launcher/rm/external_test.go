// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"gompi/internal/resize/col"
)

func TestExternal(t *testing.T) {
	x := NewExternal("4f1c", "abc")
	told := func(want string) {
		t.Helper()
		list, err := x.Take()
		if got := string(bytes.Join(list, nil)); err != nil || got != strings.TrimPrefix(want, "\n") {
			t.Errorf("told %s%v, want %s", got, err, want)
		}
	}
	step := func(want []Decision, events ...Event) {
		t.Helper()
		if got := x.Step(0, events...); !slices.Equal(got, want) {
			t.Errorf("decided %v, want %v", got, want)
		}
	}
	hear := func(line string) {
		t.Helper()
		if err := x.Hear([]byte(line)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	// Nobody is there, and no slots are free: it hears all when it comes.
	step(nil, Slots{Total: 2}, Arrived{Job{ID: 0, Size: 2, Follows: true, COL: &COL{Version: 1, Model: &col.Model{Kind: col.Linear, Slope: 1}}}},
		Arrived{Job{ID: 1, Start: 4}}, Wished{Job: 0, Size: 3, Min: 2})
	told("")
	hear(`{"version":1,"secret":"abc"}`)
	told(`
{"event":"hello","version":1,"head":"4f1c"}
{"event":"slots","total":2}
{"event":"arrived","job":0,"size":2,"follows":true,"col":{"version":1,"model":{"kind":"linear","slope":1}}}
{"event":"wished","job":0,"size":3,"min":2}
{"event":"arrived","job":1,"size":0,"start":4}
`)
	step(nil, Slots{Total: 8})
	told("{\"event\":\"slots\",\"total\":8}\n")
	hear(`{"job":0,"size":4}`)
	hear(`{"job":1,"size":4}`)
	told("")
	step([]Decision{{0, 4, 2}, {1, 4, 0}})
	step(nil)
	for _, line := range []string{`{"job":0,"size":3}`, `{"job":7,"size":3}`, `{"job":1,"size":0}`, `{"version":1}`, `{}`} {
		hear(line)
	}
	told(`
{"event":"refused","line":4,"text":"a change of job 0 to 4 processes is under way"}
{"event":"refused","line":5,"text":"there is no job 7"}
{"event":"refused","line":6,"text":"a change of job 1 to 4 processes is under way"}
{"event":"refused","line":7,"text":"a decision is {\"job\": 1, \"size\": 4}"}
{"event":"refused","line":8,"text":"a decision is {\"job\": 1, \"size\": 4}"}
`)
	step(nil, Sized{0, 4}, Sized{1, 4}, Sized{9, 1}, Slots{Total: 9, Host: 3})
	told(`
{"event":"sized","job":0,"size":4}
{"event":"sized","job":1,"size":4}
{"event":"slots","total":9,"host":3}
`)
	for _, line := range []string{`{"job":1,"size":4}`, `{"job":1,"size":6}`, `{"job":1,"size":70000}`, `{"job":1,"size":5}`} {
		hear(line)
	}
	told(`
{"event":"refused","line":9,"text":"job 1 has 4 processes"}
{"event":"refused","line":10,"text":"10 of 9 slots"}
{"event":"refused","line":11,"text":"70000 processes, 1 to 65536 allowed"}
`)
	// It goes, and comes again: what was not handed out is nothing.
	x.Leave()
	step(nil, Ended{0})
	hear(`{"version":1,"secret":"abc"}`)
	told(`
{"event":"hello","version":1,"head":"4f1c"}
{"event":"slots","total":9,"host":3}
{"event":"arrived","job":1,"size":4,"start":4}
`)
	hear(`{"job":1,"size":5}`)
	step([]Decision{{1, 5, 4}})
	step(nil, Told{1, &COL{Version: 1}}, Followed{1, true}, Followed{1, false}, Sized{1, 5}, Wished{1, 9, 7})
	told(`
{"event":"told","job":1,"col":{"version":1}}
{"event":"followed","job":1,"follows":true}
{"event":"followed","job":1}
{"event":"sized","job":1,"size":5}
{"event":"wished","job":1,"size":9,"min":7}
`)
	// It goes: who asks has slots, as long as there are some, and nobody tries again what
	// has not happened.
	x.Leave()
	step([]Decision{{1, 9, 5}})
	step(nil, Sized{1, 5})
	step([]Decision{{1, 6, 5}}, Slots{Total: 6}, Wished{1, 8, 6})
	step(nil, Sized{1, 6}, Wished{1, 7, 0})
	hear(`{"version":1,"secret":"abc"}`)
	for range 2 * maxLines {
		x.Step(0, Slots{Total: 3})
	}
	if _, err := x.Take(); !errors.Is(err, ErrBehind) {
		t.Errorf("it does not read: %v", err)
	}
	for _, first := range []string{"", "x", `{"version":1}`, `{"version":1,"secret":"abd"}`, `{"version":2,"secret":"abc"}`, `{"version":1,"secret":"abc","x":1}`,
		`{"version":1,"secret":"abc"} 1`, `{"job":1,"size":3}`, strings.Repeat(" ", MaxLine) + `{"version":1,"secret":"abc"}`} {
		y := NewExternal("", "abc")
		if err := y.Hear([]byte(first)); err == nil || y.there {
			t.Errorf("%.40q is taken", first)
		}
	}
}

// FuzzHear: whatever a program says, decisions are ones that may be.
func FuzzHear(f *testing.F) {
	f.Add([]byte("{\"job\":1,\"size\":4}\n{\"job\":2,\"size\":1}\n{\"job\":1,\"size\":4}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		w := newWorld(t, SlotsPolicy{}, 8)
		x := NewExternal("", "s")
		w.has[1], w.has[2] = 2, 0
		x.Step(0, Slots{Total: 8}, Arrived{Job{ID: 1, Size: 2}}, Arrived{Job{ID: 2}})
		if err := x.Hear([]byte(`{"version":1,"secret":"s"}`)); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			if x.Hear(line) != nil {
				return
			}
			for _, d := range x.Step(0) {
				if size, ok := w.has[d.Job]; !ok || d.From != size || d.Size < 1 || d.Size == size {
					t.Errorf("%s: %+v of %v", line, d, w.has)
				}
				if w.has[d.Job] = d.Size; w.used() > 8 {
					t.Errorf("%s: %d slots are used", line, w.used())
				}
				x.Step(0, Sized{d.Job, d.Size})
			}
		}
	})
}
