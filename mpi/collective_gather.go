// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"gompi/collectives"
	"gompi/internal/engine"
)

// Gather collects the send buffers of all ranks, which have one length, in rank
// order in recv of rank root: there len(recv) is Size times len(send);
// elsewhere recv is not used and may be nil. In place, at the root: send is the
// root's block of recv. The buffers may be reused at return. Collective. MPI
// 4.1 section 6.5.
func Gather[T any](c *Comm, send, recv []T, root int) error {
	return c.GatherBuf(BufOf(send), BufOf(recv), root)
}

// Igather starts a Gather; the buffers belong to the library until the request
// is complete. Collective. MPI 4.1 section 6.12.3.
func Igather[T any](c *Comm, send, recv []T, root int) Request {
	return c.IgatherBuf(BufOf(send), BufOf(recv), root)
}

// GatherInit prepares a Gather. Collective, see [Comm.BarrierInit]. MPI 4.1
// section 6.13.3.
func GatherInit[T any](c *Comm, send, recv []T, root int) *Persistent {
	return c.GatherInitBuf(BufOf(send), BufOf(recv), root)
}

// GatherBuf is Gather for Bufs.
func (c *Comm) GatherBuf(send, recv Buf, root int) error {
	return new(call).gather(c, send, recv, root).run()
}

// IgatherBuf is Igather for Bufs.
func (c *Comm) IgatherBuf(send, recv Buf, root int) Request {
	return new(call).gather(c, send, recv, root).start()
}

// GatherInitBuf is GatherInit for Bufs.
func (c *Comm) GatherInitBuf(send, recv Buf, root int) *Persistent {
	return new(call).gather(c, send, recv, root).prepare()
}

// Gatherv is Gather of blocks of different lengths: at the root, counts[i]
// elements of rank i land at displs[i] of recv (nil: side by side). Elsewhere
// recv, counts and displs are not used and may be nil. Collective. MPI 4.1
// section 6.5.
func Gatherv[T any](c *Comm, send, recv []T, counts, displs []int, root int) error {
	return c.GathervBuf(BufOf(send), BufOf(recv), counts, displs, root)
}

// Igatherv starts a Gatherv; the buffers and vectors belong to the library
// until the request is complete. Collective. MPI 4.1 section 6.12.3.
func Igatherv[T any](c *Comm, send, recv []T, counts, displs []int, root int) Request {
	return c.IgathervBuf(BufOf(send), BufOf(recv), counts, displs, root)
}

// GathervInit prepares a Gatherv; the vectors belong to the library until Free.
// Collective, see [Comm.BarrierInit]. MPI 4.1 section 6.13.3.
func GathervInit[T any](c *Comm, send, recv []T, counts, displs []int, root int) *Persistent {
	return c.GathervInitBuf(BufOf(send), BufOf(recv), counts, displs, root)
}

// GathervBuf is Gatherv for Bufs.
func (c *Comm) GathervBuf(send, recv Buf, counts, displs []int, root int) error {
	return new(call).gatherv(c, send, recv, counts, displs, root).run()
}

// IgathervBuf is Igatherv for Bufs.
func (c *Comm) IgathervBuf(send, recv Buf, counts, displs []int, root int) Request {
	return new(call).gatherv(c, send, recv, counts, displs, root).start()
}

// GathervInitBuf is GathervInit for Bufs.
func (c *Comm) GathervInitBuf(send, recv Buf, counts, displs []int, root int) *Persistent {
	return new(call).gatherv(c, send, recv, counts, displs, root).prepare()
}

func (a *call) gather(c *Comm, send, recv Buf, root int) *call {
	if !a.begin(c, collectives.OpGather) || !a.root(root) || !a.buffers(send, a.atRoot(recv)) {
		return a
	}
	a.Args.Count = a.units(a.In)
	if a.isRoot() && a.length(a.Out, times(a.Args.Count, c.core.size), toReceive) {
		a.inPlace(a.In, a.Out, a.Args.Count*int64(c.core.rank))
	}
	return a
}

func (a *call) gatherv(c *Comm, send, recv Buf, counts, displs []int, root int) *call {
	if !a.begin(c, collectives.OpGatherv) || !a.root(root) || !a.buffers(send, a.atRoot(recv)) {
		return a
	}
	a.Args.Count = a.units(a.In)
	if a.isRoot() {
		a.rootBlocks(counts, displs, a.In, a.Out, toSend, toReceive)
	}
	return a
}

// atRoot is a buffer that other ranks than the root do not use.
func (a *call) atRoot(b Buf) Buf {
	if a.isRoot() {
		return b
	}
	return Buf{}
}

// rootBlocks sets the layout of outer, which has the blocks of all ranks;
// inner is that of the root.
func (a *call) rootBlocks(counts, displs []int, inner, outer engine.Buf, innerHolds, outerHolds string) {
	var ok bool
	if a.Args.Counts, a.Args.Displs, ok = a.blocks(counts, displs, a.c.core.size, outer, outerHolds); !ok {
		return
	}
	if r := a.Args.Rank; a.length(inner, a.Args.Counts[r], innerHolds) {
		a.inPlace(inner, outer, a.Args.Displs[r])
	}
}
