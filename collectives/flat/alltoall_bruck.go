// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Bruck's alltoall without rotations. Slot i of a rank holds the block on its
// way from a rank i modulo 2^k before it to the rank i after that. In round k
// the slots with bit k set go to the rank 2^k further, packed into one message.
// Slot i lies at the place of the i-th rank before, where its last block
// belongs; until it first moves its block is the one for the i-th rank after,
// in In. Runs of slots lie backwards and are packed so.
//
//	steps    ceil(log2 P)
//	sent     n*(P/2)*log2 P
//	scratch  2n*floor(P/2); in place n*P more unless P is a power of two
//	source   Bruck, Ho, Kipnis, Upfal, Weathersby (1997); without rotations:
//	         Traeff, Rougier, Hunold: Implementing a classic: zero-copy
//	         all-to-all communication with MPI datatypes. ICS 2014
var alltoallBruck = collectives.Algorithm{
	Name: "bruck",
	Op:   collectives.OpAlltoall,
	Doc:  "logarithmic; for small blocks on many ranks",
	Rounds: func(a *collectives.Args) int {
		return 1 + step.CeilLog(a.Size)
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		n, p := a.Count, a.Size
		half := int64(p/2) * n
		if r == 0 {
			if bruckSaves(a) {
				dst = step.Copy(dst, step.In(0, n*int64(p)), step.Scratch(2*half, n*int64(p)))
			}
			if !a.InPlace {
				dst = step.Copy(dst, a.BlockFor(a.Rank), a.BlockFrom(a.Rank))
			}
			return bruckPack(dst, a, 0)
		}
		k := r - 1
		m := bruckSlots(p, k) * n
		dst = step.Send(dst, step.Wrap(a.Rank+1<<k, p), step.Scratch(0, m))
		dst = step.Recv(dst, step.Wrap(a.Rank-1<<k, p), step.Scratch(half, m))
		at := half
		for lo := 1 << k; lo < p; lo += 2 << k {
			dst, at = bruckRun(dst, a, lo, min(lo+1<<k, p), at, false)
		}
		if 2<<k < p {
			dst = bruckPack(dst, a, k+1)
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 {
		blocks := 2 * (a.Size / 2)
		if bruckSaves(a) {
			blocks += a.Size
		}
		return a.Count * int64(blocks)
	},
	Steps: func(a *collectives.Args) int { return step.CeilLog(a.Size) },
	Sent: func(a *collectives.Args) int64 {
		n := int64(0)
		for k := range step.CeilLog(a.Size) {
			n += bruckSlots(a.Size, k)
		}
		return n * a.Count
	},
}

// bruckSaves reports whether In is copied because slots in Out would take the
// place of blocks that have not moved.
func bruckSaves(a *collectives.Args) bool { return a.InPlace && 1<<step.FloorLog(a.Size) != a.Size }

// bruckSlots is how many of p slots have bit k set.
func bruckSlots(p, k int) int64 {
	w := 1 << k
	return int64(p/(2*w)*w + max(0, p%(2*w)-w))
}

// bruckPack collects the slots with bit k set in scratch.
func bruckPack(dst []collectives.Step, a *collectives.Args, k int) []collectives.Step {
	n, p := a.Count, a.Size
	at := int64(0)
	for lo := 1 << k; lo < p; lo += 2 << k {
		dst, at = bruckRun(dst, a, lo+1, min(lo+1<<k, p), at, true)
		from := a.BlockFor(step.Wrap(a.Rank+lo, p)) // has not moved yet
		if bruckSaves(a) {
			from = step.Scratch(2*int64(p/2)*n+from.Off, n)
		}
		dst = step.Copy(dst, from, step.Scratch(at, n))
		at += n
	}
	return dst
}

// bruckRun copies slots [lo, hi) between Out and scratch at at.
func bruckRun(dst []collectives.Step, a *collectives.Args, lo, hi int, at int64, pack bool) ([]collectives.Step, int64) {
	first, n := step.Wrap(a.Rank-hi+1, a.Size), hi-lo
	for n > 0 {
		m := min(n, a.Size-first) // the places run over the last rank
		slots := step.Out(int64(first)*a.Count, int64(m)*a.Count)
		packed := step.Scratch(at, slots.Len)
		if pack {
			dst = step.Copy(dst, slots, packed)
		} else {
			dst = step.Copy(dst, packed, slots)
		}
		at += slots.Len
		first, n = 0, n-m
	}
	return dst, at
}
