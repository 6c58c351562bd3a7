// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"slices"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
)

// Alltoall sends the i-th of Size equal blocks of send to rank i, and receives
// the block of rank i as the i-th of recv. Both have one length, equal on all
// ranks. In place: send and recv are the same slice. The buffers may be reused
// at return. Collective. MPI 4.1 section 6.8.
func Alltoall[T any](c *Comm, send, recv []T) error {
	return c.Bufs().Alltoall(BufOf(send), BufOf(recv))
}

// Ialltoall starts an Alltoall; the buffers belong to the library until the
// request is complete. Collective. MPI 4.1 section 6.12.6.
func Ialltoall[T any](c *Comm, send, recv []T) Request {
	return c.Bufs().Ialltoall(BufOf(send), BufOf(recv))
}

// AlltoallInit prepares an Alltoall. Collective, see [Comm.BarrierInit].
// MPI 4.1 section 6.13.6.
func AlltoallInit[T any](c *Comm, send, recv []T) *Persistent {
	return c.Bufs().AlltoallInit(BufOf(send), BufOf(recv))
}

// Alltoall is [Alltoall] for Bufs.
func (x Bufs) Alltoall(send, recv Buf) error {
	if made, err := x.c.briefAlltoall(send, recv); made {
		return err
	}
	return new(call).alltoall(x.c, send, recv).run()
}

// Ialltoall is [Ialltoall] for Bufs.
func (x Bufs) Ialltoall(send, recv Buf) Request {
	return new(call).alltoall(x.c, send, recv).start()
}

// AlltoallInit is [AlltoallInit] for Bufs.
func (x Bufs) AlltoallInit(send, recv Buf) *Persistent {
	return new(call).alltoall(x.c, send, recv).prepare()
}

// Alltoallv is Alltoall of blocks of different lengths: the sendCounts[i]
// elements at sendDispls[i] of send go to rank i, and recvCounts[i] elements
// from rank i land at recvDispls[i] of recv; nil displacements: side by side.
// What i sends to j must be as long as j says. In place: send and recv are the
// same slice, counts and displacements too. Collective. MPI 4.1 section 6.8.
func Alltoallv[T any](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) error {
	return c.Bufs().Alltoallv(BufOf(send), sendCounts, sendDispls, BufOf(recv), recvCounts, recvDispls)
}

// Ialltoallv starts an Alltoallv; the buffers and vectors belong to the library
// until the request is complete. Collective. MPI 4.1 section 6.12.6.
func Ialltoallv[T any](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) Request {
	return c.Bufs().Ialltoallv(BufOf(send), sendCounts, sendDispls, BufOf(recv), recvCounts, recvDispls)
}

// AlltoallvInit prepares an Alltoallv; the vectors belong to the library until
// Free. Collective, see [Comm.BarrierInit]. MPI 4.1 section 6.13.6.
func AlltoallvInit[T any](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) *Persistent {
	return c.Bufs().AlltoallvInit(BufOf(send), sendCounts, sendDispls, BufOf(recv), recvCounts, recvDispls)
}

// Alltoallv is [Alltoallv] for Bufs.
func (x Bufs) Alltoallv(send Buf, sendCounts, sendDispls []int, recv Buf, recvCounts, recvDispls []int) error {
	if made, err := x.c.briefAlltoallv(send, sendCounts, sendDispls, recv, recvCounts, recvDispls); made {
		return err
	}
	return new(call).alltoallv(x.c, send, sendCounts, sendDispls, recv, recvCounts, recvDispls).run()
}

// Ialltoallv is [Ialltoallv] for Bufs.
func (x Bufs) Ialltoallv(send Buf, sendCounts, sendDispls []int, recv Buf, recvCounts, recvDispls []int) Request {
	return new(call).alltoallv(x.c, send, sendCounts, sendDispls, recv, recvCounts, recvDispls).start()
}

// AlltoallvInit is [AlltoallvInit] for Bufs.
func (x Bufs) AlltoallvInit(send Buf, sendCounts, sendDispls []int, recv Buf, recvCounts, recvDispls []int) *Persistent {
	return new(call).alltoallv(x.c, send, sendCounts, sendDispls, recv, recvCounts, recvDispls).prepare()
}

// Alltoallw is Alltoall of blocks that have a Buf each: send[i] goes to rank i,
// and what comes from rank i lands in recv[i]; there are Size of both. What i
// sends to j must be as long, in bytes, as j says. In place: send and recv hold
// the same buffers. The buffers may be reused at return. Collective.
// MPI 4.1 section 6.8.
func (x Bufs) Alltoallw(send, recv []Buf) error {
	return new(call).alltoallw(x.c, send, recv).run()
}

// Ialltoallw starts an Alltoallw; the buffers and the slices of them belong to
// the library until the request is complete. Collective.
// MPI 4.1 section 6.12.6.
func (x Bufs) Ialltoallw(send, recv []Buf) Request {
	return new(call).alltoallw(x.c, send, recv).start()
}

// AlltoallwInit prepares an Alltoallw; the slices belong to the library until
// Free. Collective, see [Comm.BarrierInit]. MPI 4.1 section 6.13.6.
func (x Bufs) AlltoallwInit(send, recv []Buf) *Persistent {
	return new(call).alltoallw(x.c, send, recv).prepare()
}

func (a *call) alltoall(c *Comm, send, recv Buf) *call {
	if !a.begin(c, collectives.OpAlltoall) || !a.buffers(send, recv) {
		return a
	}
	x := &a.Args
	var ok bool
	if x.Count, ok = a.share(a.In, c.core.Targets, toSend); !ok {
		return a
	}
	if x.Remote > 0 {
		x.RemoteCount, ok = a.share(a.Out, x.Remote, toReceive)
	} else {
		ok = a.length(a.Out, a.units(a.In), toReceive)
	}
	if ok {
		a.inPlace(a.In, a.Out, 0)
	}
	return a
}

func (a *call) alltoallv(c *Comm, send Buf, sendCounts, sendDispls []int, recv Buf, recvCounts, recvDispls []int) *call {
	if !a.begin(c, collectives.OpAlltoallv) || !a.buffers(send, recv) {
		return a
	}
	n := c.core.Targets
	if !a.pairs(sendCounts, sendDispls, n, recvCounts, recvDispls, n) {
		return a
	}
	x := &a.Args
	same := x.Remote == 0 && a.In.Bytes() > 0 && a.In.Same(a.Out)
	x.InPlace = same && slices.Equal(x.InCounts, x.OutCounts) && slices.Equal(x.InDispls, x.OutDispls)
	switch r := x.Rank; {
	case x.InPlace:
	case a.overlap():
		if same {
			a.bad(ErrArg, "in place with one layout to send and another to receive")
		} else {
			a.bad(ErrArg, "the buffers overlap, and not as in place")
		}
	case x.Remote == 0 && x.InCounts[r] != x.OutCounts[r]:
		a.countError(r, x.OutCounts[r], x.InCounts[r], "basic elements to receive from itself")
	}
	return a
}

// pairs sets the layouts of both buffers.
func (a *call) pairs(sendCounts, sendDispls []int, dests int, recvCounts, recvDispls []int, sources int) (ok bool) {
	x := &a.Args
	if x.InCounts, x.InDispls, ok = a.blocks(sendCounts, sendDispls, dests, a.In, toSend); ok {
		x.OutCounts, x.OutDispls, ok = a.blocks(recvCounts, recvDispls, sources, a.Out, toReceive)
	}
	return ok
}

func (a *call) alltoallw(c *Comm, send, recv []Buf) *call {
	if !a.begin(c, collectives.OpAlltoallv) {
		return a
	}
	a.Op = opAlltoallw
	if n := c.core.Targets; !a.manyBuffers(send, n, recv, n) {
		return a
	}
	same, apart := false, false
	for i := range send {
		switch s, r := send[i].b, recv[i].b; {
		case s.Bytes() == 0 && r.Bytes() == 0:
		case s.Same(r):
			same = true
		default:
			apart = true
		}
		if same && apart || apart && send[i].b.Overlaps(recv[i].b) {
			a.bad(ErrArg, "the buffers for rank %d overlap, and not as in place", i)
			return a
		}
	}
	x, r := &a.Args, c.core.Rank
	x.InPlace = same
	switch {
	case x.Remote > 0 && same:
		a.bad(ErrArg, "in place on an intercommunicator")
	case x.Remote == 0 && x.InCounts[r] != x.OutCounts[r]:
		a.countError(r, x.OutCounts[r], x.InCounts[r], "bytes to receive from itself")
	}
	return a
}

const (
	opAlltoallw         fault.Call = "Alltoallw"
	opNeighborAlltoallw fault.Call = "NeighborAlltoallw"
)

// manyBuffers sets the buffers of a w-form, whose unit is the byte: types
// differ from block to block.
func (a *call) manyBuffers(send []Buf, dests int, recv []Buf, sources int) (ok bool) {
	if len(send) != dests {
		return a.countError(ProcNull, int64(len(send)), int64(dests), "buffers to send")
	}
	if len(recv) != sources {
		return a.countError(ProcNull, int64(len(recv)), int64(sources), "buffers to receive")
	}
	x := &a.Args
	if x.InCounts, x.InDispls, ok = a.oneAfterOther(send); !ok {
		return false
	}
	if x.OutCounts, x.OutDispls, ok = a.oneAfterOther(recv); !ok {
		return false
	}
	a.InBlocks, a.OutBlocks = plainBufs(send), plainBufs(recv)
	if a.InBlocks == nil {
		a.InBlocks = []buffer.Buf{} // still a w-form
	}
	a.In.Type, a.Out.Type = dtype.Byte, dtype.Byte
	return true
}

func (a *call) oneAfterOther(bufs []Buf) (counts, displs []int64, ok bool) {
	counts, displs = a.vector(len(bufs)), a.vector(len(bufs))
	at := int64(0)
	for i := range bufs {
		b := &bufs[i].b
		if b.Type != nil && b.Type.Err != nil {
			a.err = a.c.fail(&argFault{class: ErrType, op: a.Op, at: atPeer(i), err: b.Type.Err})
			return nil, nil, false
		}
		counts[i], displs[i] = b.Bytes(), at
		at += b.Bytes()
	}
	return counts, displs, true
}
