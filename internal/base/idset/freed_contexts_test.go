// SPDX-License-Identifier: Apache-2.0

package idset

import (
	"testing"

	"gompi/internal/base/wire"
	"pgregory.net/rapid"
)

// Freed against a map.
func TestFreed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s FreedContexts
		model := map[wire.ContextID]bool{}
		gen := rapid.Custom(func(t *rapid.T) wire.ContextID {
			// Near each other, and near both ends of the range.
			n := rapid.Uint32Range(0, 12).Draw(t, "serial")
			if rapid.Bool().Draw(t, "high") {
				n = ^uint32(0) - n
			}
			return wire.ContextID{Creator: proc(rapid.IntRange(0, 2).Draw(t, "creator")), Serial: n}
		})
		for range rapid.IntRange(0, 60).Draw(t, "adds") {
			id := gen.Draw(t, "id")
			s.Add(id)
			model[id] = true
			for k := range 3 {
				probe := id
				probe.Serial += uint32(k) - 1
				if s.Has(probe) != model[probe] {
					t.Fatalf("has(%v) is %v", probe, s.Has(probe))
				}
			}
		}
		for c := range 3 {
			rs := s.m[proc(c)]
			n := 0
			for i, r := range rs {
				if r.first > r.last || i > 0 && (rs[i-1].last >= r.first || rs[i-1].last+1 == r.first) {
					t.Fatalf("ranges of one creator are not apart: %v", rs)
				}
				n += int(r.last-r.first) + 1
			}
			for id := range model {
				if id.Creator == proc(c) {
					n--
				}
			}
			if n != 0 {
				t.Fatalf("creator %d: %d ids too many", c, n)
			}
		}
	})
}

// A set that is older than many others whose communicators were freed has further ones.
func TestFreedOfSets(t *testing.T) {
	var s FreedContexts
	id := func(set, k uint32) wire.ContextID { return wire.Set{Number: set}.Context(3, k) }
	s.Add(id(1, 0))
	for set := range uint32(3 * MaxGaps) {
		s.Add(id(set+2, 0))
	}
	if n := s.Intervals(wire.ProcID{Job: 3}); n > MaxGaps {
		t.Errorf("%d spans, at most %d", n, MaxGaps)
	}
	if s.Has(id(1, 1)) {
		t.Error("a communicator that was never made counts as freed")
	}
	if !s.Has(id(3*MaxGaps, 0)) {
		t.Error("one that was just freed is forgotten")
	}
}

func proc(n int) wire.ProcID { return wire.ProcID{Job: 1, Serial: uint32(n)} }
