// SPDX-License-Identifier: Apache-2.0

// Package idset keeps sets of serial numbers of processes and communicators.
// Set holds serials as intervals. FreedContexts remembers, in bounded memory, which
// communicators a process has freed. The package does no locking.
package idset

import (
	"slices"

	"gompi/internal/base/wire"
)

// FreedContexts records the communicators that a process has freed, as a set of
// serials for each creator. A serial between two recorded ones belongs to a context
// that is alive, to one whose creation is under way, or to one that this process is
// not a member of. Contexts of the last kind stay gaps for ever, so the number of
// gaps is bounded:
//
//   - Above MaxGaps, the lowest gap of a creator is closed. A context in that gap
//     counts as freed: it would be made after thousands of later contexts of the
//     same creator were freed, and is refused.
//   - Contexts of the head belong to process sets. There the lowest serials are
//     forgotten instead, because an old set may still get communicators. Nobody
//     makes one of these communicators twice.
//
// The number of creators grows, too. Other members may still send messages in the
// contexts of a creator that has ended, so the last MaxPast such creators are kept.
type FreedContexts struct {
	m    map[wire.ProcID]Set
	past []wire.ProcID // creators that have ended, the oldest first
}

// Bounds on the memory of FreedContexts.
const (
	MaxGaps = 4096 // intervals of one creator
	MaxPast = 256  // creators that have ended
)

// Add records that a context was freed.
func (s *FreedContexts) Add(id wire.ContextID) {
	if s.m == nil {
		s.m = map[wire.ProcID]Set{}
	}
	id = id.Whole() // a context and its host-local one are freed together
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

// Retire says that a creator has ended and that no object here names it any more.
func (s *FreedContexts) Retire(creator wire.ProcID) {
	if s.m[creator] == nil || slices.Contains(s.past, creator) {
		return
	}
	if s.past = append(s.past, creator); len(s.past) > MaxPast {
		delete(s.m, s.past[0])
		s.past = slices.Delete(s.past, 0, 1)
	}
}

// Has reports whether the record of a freed context is still kept.
func (s *FreedContexts) Has(id wire.ContextID) bool {
	return s.m[id.Creator].Has(id.Whole().Serial)
}

// Empty reports whether no context was ever freed.
func (s *FreedContexts) Empty() bool { return len(s.m) == 0 }

// Creators returns the number of creators on record.
func (s *FreedContexts) Creators() int { return len(s.m) }

// Intervals returns the number of intervals on record for a creator.
func (s *FreedContexts) Intervals(creator wire.ProcID) int { return len(s.m[creator]) }
