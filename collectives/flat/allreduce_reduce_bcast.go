// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Reduce and broadcast: a binomial reduction to rank 0 in rank order and a
// binomial broadcast of the result.
//
//	steps    ceil(log2 P) + floor(log2 P)
//	sent     n up, n per child down
//	scratch  n; none for a leaf
//	source   textbook
var allreduceReduceBcast = collectives.Algorithm{
	Name: "reduce-bcast",
	Op:   collectives.OpAllreduce,
	Doc:  "fewest messages, few at any one rank",
	Rounds: func(a *collectives.Args) int {
		if a.Size == 1 {
			return 1
		}
		c := children(a.Rank, a.Size)
		return c + 2*min(1, a.Rank) + min(1, c)
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		if a.Size == 1 {
			return keepOwn(dst, a)
		}
		c := children(a.Rank, a.Size)
		switch {
		case r < c:
			return take(dst, a, a.Rank+1<<r, 0, a.Count, r == 0, false)
		case a.Rank != 0 && r == c:
			return step.Send(dst, parent(a.Rank), mine(0, a.Count, c == 0))
		case a.Rank != 0 && r == c+1:
			return step.Recv(dst, parent(a.Rank), step.Out(0, a.Count))
		}
		for k := c - 1; k >= 0; k-- {
			dst = step.Send(dst, a.Rank+1<<k, step.Out(0, a.Count))
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 {
		takes := children(a.Rank, a.Size)
		if !a.InPlace {
			takes--
		}
		if takes <= 0 {
			return 0
		}
		return a.Count
	},
	Steps: func(a *collectives.Args) int { return step.CeilLog(a.Size) + step.FloorLog(a.Size) },
	Sent: func(a *collectives.Args) int64 {
		return a.Count * int64(min(1, a.Rank)+children(a.Rank, a.Size))
	},
}
