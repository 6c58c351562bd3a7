// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// alltoallReach is how many ranks on each side a rank exchanges with in one
// round. Sixteen messages each way keep a link busy and overflow no receiver.
const alltoallReach = 8

// Windowed alltoall, also for blocks of different lengths. In each round a rank
// exchanges blocks with the next few ranks further away on both sides, nearest
// first: never more than a window of messages, and no rank is everybody's peer
// at once. Both directions of a pair are in one round, which in place needs
// scratch for a window only.
//
//	steps    ceil(floor(P/2)/8)
//	sent     n*(P-1)
//	scratch  none; in place the blocks of the largest window, 16n
//	source   textbook; throttled like the scattered alltoall of MPICH
var alltoallWindow = collectives.Algorithm{
	Name: "window",
	Op:   collectives.OpAlltoall,
	Doc:  "a few messages at a time; for medium and large blocks on many ranks",
	Rounds: func(a *collectives.Args) int {
		return max(1, windows(a.Size))
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		p := a.Size
		first, last := window(p, r)
		for d := first; d < last; d++ {
			next, prev := step.Wrap(a.Rank+d, p), step.Wrap(a.Rank-d, p)
			dst = step.Send(dst, next, a.BlockFor(next))
			if prev != next {
				dst = step.Send(dst, prev, a.BlockFor(prev))
			}
		}
		at := int64(0)
		for d := first; d < last; d++ {
			next, prev := step.Wrap(a.Rank+d, p), step.Wrap(a.Rank-d, p)
			dst, at = windowRecv(dst, a, prev, at)
			if prev != next {
				dst, at = windowRecv(dst, a, next, at)
			}
		}
		if !a.InPlace {
			if r == 0 {
				dst = step.Copy(dst, a.BlockFor(a.Rank), a.BlockFrom(a.Rank))
			}
			return dst
		}
		at = 0
		for d := first; d < last; d++ {
			next, prev := step.Wrap(a.Rank+d, p), step.Wrap(a.Rank-d, p)
			dst, at = windowMove(dst, a, prev, at)
			if prev != next {
				dst, at = windowMove(dst, a, next, at)
			}
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 {
		if !a.InPlace {
			return 0
		}
		p, most := a.Size, int64(0)
		for r := range windows(p) {
			n := int64(0)
			for d, last := window(p, r); d < last; d++ {
				next, prev := step.Wrap(a.Rank+d, p), step.Wrap(a.Rank-d, p)
				n += a.BlockFrom(prev).Len
				if prev != next {
					n += a.BlockFrom(next).Len
				}
			}
			most = max(most, n)
			if a.Op == collectives.OpAlltoall { // the first is the largest
				break
			}
		}
		return most
	},
	Steps: func(a *collectives.Args) int { return windows(a.Size) },
	Sent:  alltoallSent,
}

var alltoallvWindow = alltoallWindow.As(collectives.OpAlltoallv)

func windows(p int) int { return (p/2 + alltoallReach - 1) / alltoallReach }

// window is the range of distances of round r.
func window(p, r int) (first, last int) {
	first = 1 + r*alltoallReach
	return first, min(first+alltoallReach, p/2+1)
}

// windowRecv receives the block of rank q; in place it lands in scratch at at.
func windowRecv(dst []collectives.Step, a *collectives.Args, q int, at int64) ([]collectives.Step, int64) {
	b := a.BlockFrom(q)
	if a.InPlace {
		return step.Recv(dst, q, step.Scratch(at, b.Len)), at + b.Len
	}
	return step.Recv(dst, q, b), at
}

// windowMove copies what landed in scratch.
func windowMove(dst []collectives.Step, a *collectives.Args, q int, at int64) ([]collectives.Step, int64) {
	b := a.BlockFrom(q)
	return step.Copy(dst, step.Scratch(at, b.Len), b), at + b.Len
}
