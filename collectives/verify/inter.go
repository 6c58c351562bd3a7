// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"

	"gompi/collectives"
	"gompi/collectives/step"
)

// interArgs are the arguments of one rank on an intercommunicator.
func (c *Case) interArgs(op collectives.Op, rank int) collectives.Args {
	a := collectives.Args{Op: op, Rank: rank, Size: c.Size, Remote: c.Remote, Count: c.Count, RemoteCount: c.RemoteCount, Segment: c.Segment}
	near, far := 0, c.Size // where this rank's group and the other one start
	if rank >= c.Size {
		near, far = c.Size, 0
		a.Rank, a.Size, a.Remote = rank-c.Size, c.Remote, c.Size
	}
	switch {
	case !op.Rooted():
		if near > 0 && (op == collectives.OpAllgather || op == collectives.OpAlltoall || op == collectives.OpReduceScatterBlock) {
			a.Count, a.RemoteCount = c.RemoteCount, c.Count
		}
	case near > 0:
		a.Root, a.RootRemote = c.Root, true
	case rank == c.Root:
		a.Root = c.Root
	default:
		a.Root, a.Count = -1, -1 // whatever an idle rank gives
	}
	c.RemoteBlocks(&a, rank, near, far)
	return a
}

// RemoteBlocks fills in the lengths of the v-forms and their layouts.
func (c *Case) RemoteBlocks(a *collectives.Args, rank, near, far int) {
	counts := func(size int, count func(i int) int64) []int64 {
		x := make([]int64, size)
		for i := range x {
			x[i] = count(i)
		}
		return x
	}
	from := func(i int) int64 { return c.Block(far+i, rank, 0) }
	to := func(i int) int64 { return c.Block(rank, far+i, 0) }
	switch a.Op {
	case collectives.OpGatherv:
		if a.RootRemote {
			a.Count = to(a.Root)
		} else if a.IsRoot() {
			a.Counts = counts(a.Remote, from)
		}
	case collectives.OpScatterv:
		if a.RootRemote {
			a.Count = from(a.Root)
		} else if a.IsRoot() {
			a.Counts = counts(a.Remote, to)
		}
	case collectives.OpAllgatherv:
		a.Count = to(0)
		a.Counts = counts(a.Remote, func(i int) int64 { return c.Block(far+i, near, 0) })
	case collectives.OpAlltoallv:
		a.InCounts, a.OutCounts = counts(a.Remote, to), counts(a.Remote, from)
		a.InDispls, a.OutDispls = c.layout(c.ranks()-1-rank, a.InCounts), c.layout(rank, a.OutCounts)
	case collectives.OpReduceScatter:
		a.Counts = counts(a.Size, func(i int) int64 { return c.Block(far, near+i, 0) })
		return // laid out one after the other
	}
	a.Displs = c.layout(rank, a.Counts)
}

// interExpect notes what rank r of an intercommunicator must end with.
func (v *Verifier) interExpect(r int) {
	a := &v.m.ranks[r].args
	far, _ := v.m.group(r, true)
	if a.Op.Rooted() && a.Idle() {
		return
	}
	switch a.Op {
	case collectives.OpBcast:
		root := far + a.Root
		if a.IsRoot() {
			root = r
		}
		v.expect(step.Out(0, a.Count), root, 0)
	case collectives.OpScatter, collectives.OpScatterv:
		if a.RootRemote {
			v.expect(step.Out(0, a.Count), far+a.Root, v.m.ranks[far+a.Root].args.Scattered(a.Rank).Off)
		}
	case collectives.OpGather, collectives.OpGatherv:
		if a.IsRoot() {
			v.expectAll(a, far)
		}
	case collectives.OpAllgather, collectives.OpAllgatherv:
		v.expectAll(a, far)
	case collectives.OpAlltoall, collectives.OpAlltoallv:
		for q := range a.Remote {
			v.expect(a.RemoteBlock(q), far+q, v.m.ranks[far+q].args.BlockFor(a.Rank).Off)
		}
	default:
		panic("gompi: BUG: no result known for " + a.Op.String())
	}
}

// expectAll notes the blocks of all ranks of the group that starts at far.
func (v *Verifier) expectAll(a *collectives.Args, far int) {
	for q := range a.Remote {
		v.expect(a.RemoteBlock(q), far+q, 0)
	}
}

// interFull is full on an intercommunicator.
func (c *Case) interFull(op collectives.Op) bool {
	for r := range c.ranks() {
		a := c.interArgs(op, r)
		if slices.Contains(a.Counts, 0) || slices.Contains(a.InCounts, 0) || slices.Contains(a.OutCounts, 0) {
			return false
		}
		switch op {
		case collectives.OpBcast, collectives.OpReduce, collectives.OpAllreduce: // may be cut into a block per rank
			if a.Count >= 0 && a.Count < int64(c.ranks()) {
				return false
			}
		case collectives.OpAllgather: // all blocks may be cut into one per remote rank
			if a.Count*int64(a.Size) < int64(a.Remote) {
				return false
			}
		case collectives.OpAlltoall:
			if a.Count == 0 || a.RemoteCount == 0 {
				return false
			}
		case collectives.OpGather, collectives.OpScatter, collectives.OpReduceScatterBlock, collectives.OpAllgatherv:
			if a.Count == 0 {
				return false
			}
		}
	}
	return true
}
