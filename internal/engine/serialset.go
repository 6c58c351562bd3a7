// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"gompi/internal/wire"
)

// serialSet holds the ids of freed contexts, as intervals of serials for each
// creator. A gap is a context that still lives, one that is on its way, or one
// that this process is no member of and never hears of. Those would add up: of
// more than maxGaps the lowest is closed. A context that is made so late, after
// thousands of later ones of the same creator were freed, is refused.
//
// Creators that have ended add up, too. Other members may still send in what
// they have made, so those of maxPast are kept.
type serialSet struct {
	m    map[wire.ProcID][]serialRange
	past []wire.ProcID // creators that have ended, oldest first
}

const (
	maxGaps = 4096
	maxPast = 256
)

type serialRange struct{ lo, hi uint32 } // inclusive

func (s *serialSet) find(rs []serialRange, n uint32) (int, bool) {
	return slices.BinarySearchFunc(rs, n, func(r serialRange, n uint32) int {
		switch {
		case r.hi < n:
			return -1
		case r.lo > n:
			return 1
		}
		return 0
	})
}

func (s *serialSet) add(id wire.ContextID) {
	if s.m == nil {
		s.m = map[wire.ProcID][]serialRange{}
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
		rs = slices.Insert(rs, i, serialRange{n, n})
		if len(rs) > maxGaps {
			rs[1].lo = rs[0].lo
			rs = slices.Delete(rs, 0, 1)
		}
	}
	s.m[id.Creator] = rs
}

// retire tells that a creator has ended and nothing here names it any more.
func (s *serialSet) retire(creator wire.ProcID) {
	if s.m[creator] == nil || slices.Contains(s.past, creator) {
		return
	}
	if s.past = append(s.past, creator); len(s.past) > maxPast {
		delete(s.m, s.past[0])
		s.past = slices.Delete(s.past, 0, 1)
	}
}

func (s *serialSet) has(id wire.ContextID) bool {
	_, ok := s.find(s.m[id.Creator], id.Whole().Serial)
	return ok
}
