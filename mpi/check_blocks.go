// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"cmp"
	"fmt"
	"slices"

	"gompi/collectives"
	"gompi/internal/engine"
)

// beginColl is begin for a collective call, whose blocks must not overlap each
// other either.
func (k *checker) beginColl(c *Comm, a *engine.CollArgs) (*use, error) {
	if err := k.apart(c, a); err != nil {
		return nil, err
	}
	return k.begin(c, collUse(a))
}

// apart fails if two blocks that a call receives share memory, or, with a
// buffer for each block, one that it receives and one that it sends, other than
// in place.
func (k *checker) apart(c *Comm, a *engine.CollArgs) error {
	x := &a.Args
	switch {
	case a.InBlocks != nil:
		return buffersApart(c, a)
	case x.OutCounts != nil:
		return rangesApart(c, a, x.OutCounts, x.OutDispls)
	case x.Op == collectives.OpGatherv || x.Op == collectives.OpAllgatherv:
		return rangesApart(c, a, x.Counts, x.Displs)
	}
	return nil
}

// rangesApart checks blocks of one buffer.
func rangesApart(c *Comm, a *engine.CollArgs, counts, displs []int64) error {
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
			return c.argError(ErrArg, a.Op, ProcNull, -1, -1, -1, "", fmt.Errorf(
				"the blocks [%d, %d+%d) and [%d, %d+%d) to receive overlap", displs[i], displs[i], counts[i], displs[j], displs[j], counts[j]))
		}
	}
	return nil
}

// buffersApart checks blocks that have buffers of their own.
func buffersApart(c *Comm, a *engine.CollArgs) error {
	for i, x := range a.OutBlocks {
		for j, y := range a.OutBlocks[:i] {
			if x.Overlaps(y) {
				return c.argError(ErrArg, a.Op, ProcNull, -1, -1, -1, "", fmt.Errorf("buffers %d and %d to receive overlap", j, i))
			}
		}
		for j, y := range a.InBlocks {
			if !a.Args.InPlace && x.Overlaps(y) {
				return c.argError(ErrArg, a.Op, ProcNull, -1, -1, -1, "", fmt.Errorf("buffer %d to send and %d to receive overlap", j, i))
			}
		}
	}
	return nil
}
