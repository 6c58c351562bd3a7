// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"slices"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/engine"
)

// bookColl is Book for a collective call, whose blocks must not overlap each
// other either.
func (k *Checker) bookColl(c *Comm, a *engine.CollArgs) (*Use, *fault.Fault) {
	if f := apart(a); f != nil {
		return nil, f
	}
	return k.Book(c, CollUse(a))
}

// apart fails if two blocks that a call receives share memory, or, with a
// buffer for each block, one that it receives and one that it sends, other than
// in place.
func apart(a *engine.CollArgs) *fault.Fault {
	x := &a.Args
	switch {
	case a.InBlocks != nil:
		return buffersApart(a)
	case x.OutCounts != nil:
		return rangesApart(x.OutCounts, x.OutDispls)
	case x.Op == collectives.OpGatherv || x.Op == collectives.OpAllgatherv:
		return rangesApart(x.Counts, x.Displs)
	}
	return nil
}

// rangesApart checks blocks of one buffer.
func rangesApart(counts, displs []int64) *fault.Fault {
	var order []int
	for i, n := range counts {
		if n > 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(displs[i], displs[j]) })
	for k := 1; k < len(order); k++ {
		i, j := order[k-1], order[k]
		if displs[i]+counts[i] > displs[j] {
			return wrong(fault.Arg, "the blocks [%d, %d+%d) and [%d, %d+%d) to receive overlap", displs[i], displs[i], counts[i], displs[j], displs[j], counts[j])
		}
	}
	return nil
}

// buffersApart checks blocks that have buffers of their own.
func buffersApart(a *engine.CollArgs) *fault.Fault {
	for i, x := range a.OutBlocks {
		for j, y := range a.OutBlocks[:i] {
			if x.Overlaps(y) {
				return wrong(fault.Arg, "buffers %d and %d to receive overlap", j, i)
			}
		}
		for j, y := range a.InBlocks {
			if !a.Args.InPlace && x.Overlaps(y) {
				return wrong(fault.Arg, "buffer %d to send and %d to receive overlap", j, i)
			}
		}
	}
	return nil
}
