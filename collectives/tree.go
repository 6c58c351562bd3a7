// SPDX-License-Identifier: Apache-2.0

package collectives

import "math/bits"

// The binomial tree on p vertices numbered from the root 0: the parent of v is
// v without its lowest set bit, and the subtree of v is [v, v+span(v)). Child k
// of v is v+2^k. Contiguous subtrees let blocks travel in one piece, and let a
// reduction towards vertex 0 keep the order of the ranks.

func span(v, p int) int {
	if v == 0 {
		return p
	}
	return min(v&-v, p-v)
}

func children(v, p int) int { return bits.Len(uint(span(v, p) - 1)) }

func parent(v int) int { return v & (v - 1) }

// vertex numbers the ranks from the root on; rankOf is its inverse.
func vertex(a *Args) int        { return wrap(a.Rank-a.Root, a.Size) }
func rankOf(a *Args, v int) int { return wrap(v+a.Root, a.Size) }

// folded pictures a group as one of 2^log ranks: of the first 2*rem ranks each
// even one hands its data to the odd one after it and gets the result at the
// end. Neighbours are joined, so the order of the ranks is kept.
type folded struct {
	log, rem int
	num      int // the number among the 2^log, -1 for a rank that hands over
}

func fold(rank, size int) folded {
	f := folded{log: floorLog(size)}
	f.rem = size - 1<<f.log
	switch {
	case rank >= 2*f.rem:
		f.num = rank - f.rem
	case rank&1 == 1:
		f.num = rank >> 1
	default:
		f.num = -1
	}
	return f
}

// joined reports whether number num stands for two ranks.
func (f folded) joined() bool { return f.num >= 0 && f.num < f.rem }

// rank is the rank that has number num.
func (f folded) rank(num int) int {
	if num < f.rem {
		return 2*num + 1
	}
	return num + f.rem
}

// first is the lowest rank that number num stands for; of the number after the
// last it is the size of the group.
func (f folded) first(num int) int { return num + min(num, f.rem) }

// steps is the number of dependent rounds of an algorithm that takes inner of
// them on the 2^log ranks.
func (f folded) steps(inner int) int {
	if f.rem > 0 {
		return inner + 2
	}
	return inner
}
