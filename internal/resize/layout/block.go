// SPDX-License-Identifier: Apache-2.0

package layout

import "iter"

// block is the split by the published formula of MaM: with b = n/P, the first n%P ranks have
// b+1 elements and the others b.
type block struct {
	n     int64
	ranks int
}

func (s block) Ranks() int   { return s.ranks }
func (s block) Elems() int64 { return s.n }

// start returns the first element of a rank. rank may be the number of ranks.
func (s block) start(rank int) int64 {
	p, r := int64(s.ranks), int64(rank)
	return s.n/p*r + min(s.n%p, r)
}

func (s block) Count(rank int) int64        { return s.start(rank+1) - s.start(rank) }
func (s block) Runs(rank int) iter.Seq[Run] { return singleRun(s.start(rank), s.Count(rank)) }

func (s block) Locate(i int64) (rank int, local, n int64) {
	p := int64(s.ranks)
	b, rem := s.n/p, s.n%p
	if mid := rem * (b + 1); i < mid {
		rank = int(i / (b + 1))
	} else { // b is not 0: otherwise element i would not exist
		rank = int(rem + (i-mid)/b)
	}
	at := s.start(rank)
	return rank, i - at, s.start(rank+1) - i
}

// cyclic is the split that deals out blocks in turn.
type cyclic struct {
	n, size int64
	ranks   int
}

func (s cyclic) Ranks() int   { return s.ranks }
func (s cyclic) Elems() int64 { return s.n }

func (s cyclic) Count(rank int) int64 {
	p, r := int64(s.ranks), int64(rank)
	whole, rest := s.n/s.size, s.n%s.size
	n := whole / p * s.size
	switch left := whole % p; {
	case r < left:
		n += s.size
	case r == left:
		n += rest
	}
	return n
}

func (s cyclic) Runs(rank int) iter.Seq[Run] {
	return func(yield func(Run) bool) {
		if s.ranks == 1 {
			singleRun(0, s.n)(yield)
			return
		}
		// Count in blocks: the index of an element behind the last might overflow.
		for j := int64(rank); j <= (s.n-1)/s.size && s.n > 0; j += int64(s.ranks) {
			if at := j * s.size; !yield(Run{at, min(s.size, s.n-at)}) {
				return
			}
		}
	}
}

func (s cyclic) Locate(i int64) (rank int, local, n int64) {
	p := int64(s.ranks)
	if p == 1 {
		return 0, i, s.n - i
	}
	j, in := i/s.size, i%s.size
	return int(j % p), j/p*s.size + in, min(s.size-in, s.n-i)
}
