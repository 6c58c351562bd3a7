// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"math"

	"gompi/collectives"
)

// ReduceScatterBlock combines the send buffers of all ranks element by element
// with op, and gives each rank its block of the result: len(send) is Size times
// len(recv), equal on all ranks. In place: recv is the beginning of send, whose
// rest is undefined afterwards. The buffers may be reused at return.
// Collective. MPI 4.1 section 6.10.1.
func ReduceScatterBlock[T any](c *Comm, send, recv []T, op Op) error {
	return c.Bufs().ReduceScatterBlock(BufOf(send), BufOf(recv), op)
}

// IreduceScatterBlock starts a ReduceScatterBlock; the buffers belong to the
// library until the request is complete. Collective. MPI 4.1 section 6.12.9.
func IreduceScatterBlock[T any](c *Comm, send, recv []T, op Op) Request {
	return c.Bufs().IreduceScatterBlock(BufOf(send), BufOf(recv), op)
}

// ReduceScatterBlockInit prepares a ReduceScatterBlock. Collective, see
// [Comm.BarrierInit]. MPI 4.1 section 6.13.9.
func ReduceScatterBlockInit[T any](c *Comm, send, recv []T, op Op) *Persistent {
	return c.Bufs().ReduceScatterBlockInit(BufOf(send), BufOf(recv), op)
}

// ReduceScatterBlock is [ReduceScatterBlock] for Bufs.
func (x Bufs) ReduceScatterBlock(send, recv Buf, op Op) error {
	return new(call).reduceScatterBlock(x.c, send, recv, &op).run()
}

// IreduceScatterBlock is [IreduceScatterBlock] for Bufs.
func (x Bufs) IreduceScatterBlock(send, recv Buf, op Op) Request {
	return new(call).reduceScatterBlock(x.c, send, recv, &op).start()
}

// ReduceScatterBlockInit is [ReduceScatterBlockInit] for Bufs.
func (x Bufs) ReduceScatterBlockInit(send, recv Buf, op Op) *Persistent {
	return new(call).reduceScatterBlock(x.c, send, recv, &op).prepare()
}

// ReduceScatter is ReduceScatterBlock of blocks of different lengths: rank i
// gets counts[i] elements. counts are equal on all ranks. Collective.
// MPI 4.1 section 6.10.2.
func ReduceScatter[T any](c *Comm, send, recv []T, counts []int, op Op) error {
	return c.Bufs().ReduceScatter(BufOf(send), BufOf(recv), counts, op)
}

// IreduceScatter starts a ReduceScatter; the buffers and vectors belong to the
// library until the request is complete. Collective. MPI 4.1 section 6.12.10.
func IreduceScatter[T any](c *Comm, send, recv []T, counts []int, op Op) Request {
	return c.Bufs().IreduceScatter(BufOf(send), BufOf(recv), counts, op)
}

// ReduceScatterInit prepares a ReduceScatter; the vectors belong to the library
// until Free. Collective, see [Comm.BarrierInit]. MPI 4.1 section 6.13.10.
func ReduceScatterInit[T any](c *Comm, send, recv []T, counts []int, op Op) *Persistent {
	return c.Bufs().ReduceScatterInit(BufOf(send), BufOf(recv), counts, op)
}

// ReduceScatter is [ReduceScatter] for Bufs.
func (x Bufs) ReduceScatter(send, recv Buf, counts []int, op Op) error {
	return new(call).reduceScatter(x.c, send, recv, counts, &op).run()
}

// IreduceScatter is [IreduceScatter] for Bufs.
func (x Bufs) IreduceScatter(send, recv Buf, counts []int, op Op) Request {
	return new(call).reduceScatter(x.c, send, recv, counts, &op).start()
}

// ReduceScatterInit is [ReduceScatterInit] for Bufs.
func (x Bufs) ReduceScatterInit(send, recv Buf, counts []int, op Op) *Persistent {
	return new(call).reduceScatter(x.c, send, recv, counts, &op).prepare()
}

func (a *call) reduceScatterBlock(c *Comm, send, recv Buf, op *Op) *call {
	if !a.begin(c, collectives.OpReduceScatterBlock) || !a.buffers(send, recv) {
		return a
	}
	a.Args.Count = a.units(a.Out)
	if a.length(a.In, times(a.Args.Count, c.core.Size), toSend) && a.reduction(op) {
		a.inPlace(a.Out, a.In, 0)
	}
	return a
}

func (a *call) reduceScatter(c *Comm, send, recv Buf, counts []int, op *Op) *call {
	if !a.begin(c, collectives.OpReduceScatter) || !a.buffers(send, recv) {
		return a
	}
	var ok bool
	if a.Args.Counts, ok = a.counts(counts, c.core.Size, a.In, toSend); !ok {
		return a
	}
	a.Args.Displs = a.vector(c.core.Size)
	sum := int64(0)
	for i, n := range a.Args.Counts {
		a.Args.Displs[i] = sum
		sum = min(sum, math.MaxInt64-n) + n
	}
	if a.length(a.In, sum, toSend) && a.length(a.Out, a.Args.Counts[c.core.Rank], toReceive) && a.reduction(op) {
		a.inPlace(a.Out, a.In, 0)
	}
	return a
}
