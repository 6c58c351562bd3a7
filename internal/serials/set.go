// SPDX-License-Identifier: Apache-2.0

// Package serials remembers which communicators a process has had.
package serials

import (
	"slices"

	"gompi/internal/wire"
)

// Set holds the ids of freed contexts, as intervals of serials for each
// creator. A gap is a context that still lives, one that is on its way, or one
// that this process is no member of and never hears of. Those would add up: of
// more than MaxGaps the lowest is closed. A context that is made so late, after
// thousands of later ones of the same creator were freed, is refused.
//
// Creators that have ended add up, too. Other members may still send in what
// they have made, so those of MaxPast are kept.
type Set struct {
	m    map[wire.ProcID][]span
	past []wire.ProcID // creators that have ended, oldest first
}

// How much a Set remembers.
const (
	MaxGaps = 4096 // of one creator
	MaxPast = 256  // creators that have ended
)

type span struct{ lo, hi uint32 } // inclusive

func (s *Set) find(rs []span, n uint32) (int, bool) {
	return slices.BinarySearchFunc(rs, n, func(r span, n uint32) int {
		switch {
		case r.hi < n:
			return -1
		case r.lo > n:
			return 1
		}
		return 0
	})
}

// Add books that a context was freed.
func (s *Set) Add(id wire.ContextID) {
	if s.m == nil {
		s.m = map[wire.ProcID][]span{}
	}
	id = id.Whole() // both are freed at once
	rs, n := s.m[id.Creator], id.Serial
	i, ok := s.find(rs, n)
	if ok {
		return
	}
	left := i > 0 && rs[i-1].hi+1 == n
	right := i < len(rs) && rs[i].lo == n+1
	switch {
	case left && right:
		rs[i-1].hi = rs[i].hi
		rs = slices.Delete(rs, i, i+1)
	case left:
		rs[i-1].hi = n
	case right:
		rs[i].lo = n
	default:
		rs = slices.Insert(rs, i, span{n, n})
		if len(rs) > MaxGaps {
			rs[1].lo = rs[0].lo
			rs = slices.Delete(rs, 0, 1)
		}
	}
	s.m[id.Creator] = rs
}

// Retire tells that a creator has ended and nothing here names it any more.
func (s *Set) Retire(creator wire.ProcID) {
	if s.m[creator] == nil || slices.Contains(s.past, creator) {
		return
	}
	if s.past = append(s.past, creator); len(s.past) > MaxPast {
		delete(s.m, s.past[0])
		s.past = slices.Delete(s.past, 0, 1)
	}
}

// Has reports whether a context was freed, as far as that is remembered.
func (s *Set) Has(id wire.ContextID) bool {
	_, ok := s.find(s.m[id.Creator], id.Whole().Serial)
	return ok
}

// Empty reports whether no context was ever freed.
func (s *Set) Empty() bool { return len(s.m) == 0 }

// Creators is how many are remembered.
func (s *Set) Creators() int { return len(s.m) }

// Spans is how much is remembered of one.
func (s *Set) Spans(creator wire.ProcID) int { return len(s.m[creator]) }
