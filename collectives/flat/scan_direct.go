// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Direct scans, inclusive and exclusive. Every rank sends its vector to all
// ranks after it in one round and folds what it gets in rank order.
//
//	steps    1
//	sent     n for each rank after this one
//	scratch  n for each rank before this one but the first; in place for all
//	source   textbook
var scanDirect = collectives.Algorithm{
	Name:   "direct",
	Op:     collectives.OpScan,
	Doc:    "one step, much data; for a few elements on a few ranks",
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		n := a.Count
		for q := a.Rank + 1; q < a.Size; q++ {
			dst = step.Send(dst, q, step.In(0, n))
		}
		if a.Rank == 0 {
			if a.Op == collectives.OpScan {
				dst = keepOwn(dst, a)
			}
			return dst
		}
		for q := range a.Rank {
			dst = step.Recv(dst, q, directSlot(a, q, 0, n))
		}
		acc := directSlot(a, 0, 0, n)
		for q := 1; q < a.Rank; q++ {
			dst = step.Reduce(dst, directSlot(a, q, 0, n), acc, false)
		}
		switch {
		case a.Op == collectives.OpScan && a.InPlace:
			return step.Reduce(dst, acc, step.Out(0, n), true)
		case a.Op == collectives.OpScan:
			return step.Reduce(dst, step.In(0, n), acc, false)
		case a.InPlace:
			return step.Copy(dst, acc, step.Out(0, n))
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 {
		slots := a.Rank
		if !a.InPlace {
			slots--
		}
		return a.Count * int64(max(0, slots))
	},
	Steps: func(a *collectives.Args) int { return min(1, a.Size-1) },
	Sent:  func(a *collectives.Args) int64 { return a.Count * int64(a.Size-1-a.Rank) },
}

var exscanDirect = scanDirect.As(collectives.OpExscan)
