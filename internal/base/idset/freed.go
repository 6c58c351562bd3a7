// SPDX-License-Identifier: Apache-2.0

// Package serials has sets of serial numbers, of processes and of communicators.
package idset

import (
	"slices"

	"gompi/internal/base/wire"
)

// Freed is which communicators a process has freed: the serials of their contexts
// for each creator. A gap is a context that still lives, one that is on its way, or one
// that this process is no member of and never hears of. Those would add up: of
// more than MaxGaps the lowest is closed. A context that is made so late, after
// thousands of later ones of the same creator were freed, is refused. Of the head's,
// which come with process sets, the lowest are forgotten instead: an old set may have
// further communicators, and nobody makes one of them twice.
//
// Creators that have ended add up, too. Other members may still send in what
// they have made, so those of MaxPast are kept.
type FreedContexts struct {
	m    map[wire.ProcID]Set
	past []wire.ProcID // creators that have ended, oldest first
}

// How much Freed remembers.
const (
	MaxGaps = 4096 // of one creator
	MaxPast = 256  // creators that have ended
)

// Add books that a context was freed.
func (s *FreedContexts) Add(id wire.ContextID) {
	if s.m == nil {
		s.m = map[wire.ProcID]Set{}
	}
	id = id.Whole() // both are freed at once
	of := s.m[id.Creator]
	of.Add(id.Serial, id.Serial)
	if len(of) > MaxGaps {
		if id.Creator.Serial == 0 {
			of = of[1:]
		} else {
			of.Add(of[0].first, of[1].last)
		}
	}
	s.m[id.Creator] = of
}

// Retire tells that a creator has ended and nothing here names it any more.
func (s *FreedContexts) Retire(creator wire.ProcID) {
	if s.m[creator] == nil || slices.Contains(s.past, creator) {
		return
	}
	if s.past = append(s.past, creator); len(s.past) > MaxPast {
		delete(s.m, s.past[0])
		s.past = slices.Delete(s.past, 0, 1)
	}
}

// Has reports whether a context was freed, as far as that is remembered.
func (s *FreedContexts) Has(id wire.ContextID) bool {
	return s.m[id.Creator].Has(id.Whole().Serial)
}

// Empty reports whether no context was ever freed.
func (s *FreedContexts) Empty() bool { return len(s.m) == 0 }

// Creators is how many are remembered.
func (s *FreedContexts) Creators() int { return len(s.m) }

// Spans is how much is remembered of one.
func (s *FreedContexts) Intervals(creator wire.ProcID) int { return len(s.m[creator]) }
