// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"gompi/collectives"
	"gompi/internal/data/buffer"
)

// Gather collects the send buffers of all ranks, which have one length, in rank
// order in recv of rank root: there len(recv) is Size times len(send);
// elsewhere recv is not used and may be nil. In place, at the root: send is the
// root's block of recv. The buffers may be reused at return. Collective.
// MPI 4.1 section 6.5.
func Gather[T any](c *Comm, send, recv []T, root int) error {
	return c.Bufs().Gather(BufOf(send), BufOf(recv), root)
}

// Igather starts a Gather; the buffers belong to the library until the request
// is complete. Collective. MPI 4.1 section 6.12.3.
func Igather[T any](c *Comm, send, recv []T, root int) Request {
	return c.Bufs().Igather(BufOf(send), BufOf(recv), root)
}

// GatherInit prepares a Gather. Collective, see [Comm.BarrierInit].
// MPI 4.1 section 6.13.3.
func GatherInit[T any](c *Comm, send, recv []T, root int) *Persistent {
	return c.Bufs().GatherInit(BufOf(send), BufOf(recv), root)
}

// Gather is [Gather] for Bufs.
func (x Bufs) Gather(send, recv Buf, root int) error {
	return new(call).gather(x.c, send, recv, root).run()
}

// Igather is [Igather] for Bufs.
func (x Bufs) Igather(send, recv Buf, root int) Request {
	return new(call).gather(x.c, send, recv, root).start()
}

// GatherInit is [GatherInit] for Bufs.
func (x Bufs) GatherInit(send, recv Buf, root int) *Persistent {
	return new(call).gather(x.c, send, recv, root).prepare()
}

// Gatherv is Gather of blocks of different lengths: at the root, counts[i]
// elements of rank i land at displs[i] of recv (nil: side by side). Elsewhere
// recv, counts and displs are not used and may be nil. Collective.
// MPI 4.1 section 6.5.
func Gatherv[T any](c *Comm, send, recv []T, counts, displs []int, root int) error {
	return c.Bufs().Gatherv(BufOf(send), BufOf(recv), counts, displs, root)
}

// Igatherv starts a Gatherv; the buffers and vectors belong to the library
// until the request is complete. Collective. MPI 4.1 section 6.12.3.
func Igatherv[T any](c *Comm, send, recv []T, counts, displs []int, root int) Request {
	return c.Bufs().Igatherv(BufOf(send), BufOf(recv), counts, displs, root)
}

// GathervInit prepares a Gatherv; the vectors belong to the library until Free.
// Collective, see [Comm.BarrierInit]. MPI 4.1 section 6.13.3.
func GathervInit[T any](c *Comm, send, recv []T, counts, displs []int, root int) *Persistent {
	return c.Bufs().GathervInit(BufOf(send), BufOf(recv), counts, displs, root)
}

// Gatherv is [Gatherv] for Bufs.
func (x Bufs) Gatherv(send, recv Buf, counts, displs []int, root int) error {
	return new(call).gatherv(x.c, send, recv, counts, displs, root).run()
}

// Igatherv is [Igatherv] for Bufs.
func (x Bufs) Igatherv(send, recv Buf, counts, displs []int, root int) Request {
	return new(call).gatherv(x.c, send, recv, counts, displs, root).start()
}

// GathervInit is [GathervInit] for Bufs.
func (x Bufs) GathervInit(send, recv Buf, counts, displs []int, root int) *Persistent {
	return new(call).gatherv(x.c, send, recv, counts, displs, root).prepare()
}

func (a *call) gather(c *Comm, send, recv Buf, root int) *call {
	if a.begin(c, collectives.OpGather) && a.root(root) && a.buffers(send.at(a.isLeaf()), recv.at(a.isRoot())) {
		a.rootShares(a.In, a.Out, toReceive)
	}
	return a
}

func (a *call) gatherv(c *Comm, send, recv Buf, counts, displs []int, root int) *call {
	if a.begin(c, collectives.OpGatherv) && a.root(root) && a.buffers(send.at(a.isLeaf()), recv.at(a.isRoot())) {
		a.rootBlocks(counts, displs, a.In, a.Out, toSend, toReceive)
	}
	return a
}

// rootShares sets the length of a block: inner is that of the caller, outer is
// where the root has those of all.
func (a *call) rootShares(inner, outer buffer.Buf, outerHolds string) {
	x := &a.Args
	switch {
	case a.isLeaf():
		x.Count = a.units(inner)
		if a.isRoot() && a.length(outer, times(x.Count, x.Size), outerHolds) {
			a.inPlace(inner, outer, x.Count*int64(x.Rank))
		}
	case a.isRoot():
		x.Count, _ = a.share(outer, x.Remote, outerHolds)
	}
}

// rootBlocks is rootShares for blocks of different lengths.
func (a *call) rootBlocks(counts, displs []int, inner, outer buffer.Buf, innerHolds, outerHolds string) {
	a.Args.Count = a.units(inner)
	if a.isRoot() {
		a.everyBlock(counts, displs, inner, outer, innerHolds, outerHolds)
	}
}

// everyBlock sets the layout of outer, which has the blocks of all ranks, of
// which inner is the caller's; on an intercommunicator those of the remote
// group.
func (a *call) everyBlock(counts, displs []int, inner, outer buffer.Buf, innerHolds, outerHolds string) {
	x := &a.Args
	var ok bool
	if x.Counts, x.Displs, ok = a.blocks(counts, displs, a.c.core.Targets, outer, outerHolds); !ok {
		return
	}
	if x.Remote > 0 {
		a.apart()
	} else if a.length(inner, x.Counts[x.Rank], innerHolds) {
		a.inPlace(inner, outer, x.Displs[x.Rank])
	}
}
