// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"gompi/collectives"
)

// Allgather collects the send buffers of all ranks, which have one length, in
// rank order in recv of every rank: len(recv) is Size times len(send). In
// place: send is the caller's block of recv. The buffers may be reused at
// return. Collective. MPI 4.1 section 6.7.
func Allgather[T any](c *Comm, send, recv []T) error {
	return c.Bufs().Allgather(BufOf(send), BufOf(recv))
}

// Iallgather starts an Allgather; the buffers belong to the library until the
// request is complete. Collective. MPI 4.1 section 6.12.5.
func Iallgather[T any](c *Comm, send, recv []T) Request {
	return c.Bufs().Iallgather(BufOf(send), BufOf(recv))
}

// AllgatherInit prepares an Allgather. Collective, see [Comm.BarrierInit].
// MPI 4.1 section 6.13.5.
func AllgatherInit[T any](c *Comm, send, recv []T) *Persistent {
	return c.Bufs().AllgatherInit(BufOf(send), BufOf(recv))
}

// Allgather is [Allgather] for Bufs.
func (x Bufs) Allgather(send, recv Buf) error {
	if made, err := x.c.briefAllgather(send, recv); made {
		return err
	}
	return new(call).allgather(x.c, send, recv).run()
}

// Iallgather is [Iallgather] for Bufs.
func (x Bufs) Iallgather(send, recv Buf) Request {
	return new(call).allgather(x.c, send, recv).start()
}

// AllgatherInit is [AllgatherInit] for Bufs.
func (x Bufs) AllgatherInit(send, recv Buf) *Persistent {
	return new(call).allgather(x.c, send, recv).prepare()
}

// Allgatherv is Allgather of blocks of different lengths: rank i sends
// counts[i] elements, which land at displs[i] of recv (nil: side by side).
// counts are equal on all ranks. Collective. MPI 4.1 section 6.7.
func Allgatherv[T any](c *Comm, send, recv []T, counts, displs []int) error {
	return c.Bufs().Allgatherv(BufOf(send), BufOf(recv), counts, displs)
}

// Iallgatherv starts an Allgatherv; the buffers and vectors belong to the
// library until the request is complete. Collective. MPI 4.1 section 6.12.5.
func Iallgatherv[T any](c *Comm, send, recv []T, counts, displs []int) Request {
	return c.Bufs().Iallgatherv(BufOf(send), BufOf(recv), counts, displs)
}

// AllgathervInit prepares an Allgatherv; the vectors belong to the library
// until Free. Collective, see [Comm.BarrierInit]. MPI 4.1 section 6.13.5.
func AllgathervInit[T any](c *Comm, send, recv []T, counts, displs []int) *Persistent {
	return c.Bufs().AllgathervInit(BufOf(send), BufOf(recv), counts, displs)
}

// Allgatherv is [Allgatherv] for Bufs.
func (x Bufs) Allgatherv(send, recv Buf, counts, displs []int) error {
	return new(call).allgatherv(x.c, send, recv, counts, displs).run()
}

// Iallgatherv is [Iallgatherv] for Bufs.
func (x Bufs) Iallgatherv(send, recv Buf, counts, displs []int) Request {
	return new(call).allgatherv(x.c, send, recv, counts, displs).start()
}

// AllgathervInit is [AllgathervInit] for Bufs.
func (x Bufs) AllgathervInit(send, recv Buf, counts, displs []int) *Persistent {
	return new(call).allgatherv(x.c, send, recv, counts, displs).prepare()
}

func (a *call) allgather(c *Comm, send, recv Buf) *call {
	if !a.begin(c, collectives.OpAllgather) || !a.buffers(send, recv) {
		return a
	}
	x := &a.Args
	x.Count = a.units(a.In)
	var ok bool
	if x.Remote > 0 {
		x.RemoteCount, ok = a.share(a.Out, x.Remote, toReceive)
	} else {
		ok = a.length(a.Out, times(x.Count, x.Size), toReceive)
	}
	if ok {
		a.inPlace(a.In, a.Out, x.Count*int64(x.Rank))
	}
	return a
}

func (a *call) allgatherv(c *Comm, send, recv Buf, counts, displs []int) *call {
	if a.begin(c, collectives.OpAllgatherv) && a.buffers(send, recv) {
		a.Args.Count = a.units(a.In)
		a.everyBlock(counts, displs, a.In, a.Out, toSend, toReceive)
	}
	return a
}
