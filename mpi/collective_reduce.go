// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"gompi/collectives"
)

// Reduce combines the send buffers of all ranks element by element with op into
// recv of rank root; elsewhere recv is not used and may be nil. All have one
// length. In place, at the root: send and recv are the same slice. The buffers
// may be reused at return. Collective. MPI 4.1 section 6.9.1.
func Reduce[T any](c *Comm, send, recv []T, op Op, root int) error {
	return c.Bufs().Reduce(BufOf(send), BufOf(recv), op, root)
}

// Ireduce starts a Reduce; the buffers belong to the library until the request
// is complete. Collective. MPI 4.1 section 6.12.7.
func Ireduce[T any](c *Comm, send, recv []T, op Op, root int) Request {
	return c.Bufs().Ireduce(BufOf(send), BufOf(recv), op, root)
}

// ReduceInit prepares a Reduce. Collective, see [Comm.BarrierInit].
// MPI 4.1 section 6.13.7.
func ReduceInit[T any](c *Comm, send, recv []T, op Op, root int) *Persistent {
	return c.Bufs().ReduceInit(BufOf(send), BufOf(recv), op, root)
}

// Reduce is [Reduce] for Bufs.
func (x Bufs) Reduce(send, recv Buf, op Op, root int) error {
	if x.c != nil && uint(root) < uint(x.c.core.Size) {
		if made, err := x.c.briefReduce(collectives.OpReduce, send, recv, &op, root, root == x.c.core.Rank); made {
			return err
		}
	}
	return new(call).reduce(x.c, send, recv, &op, root).run()
}

// Ireduce is [Ireduce] for Bufs.
func (x Bufs) Ireduce(send, recv Buf, op Op, root int) Request {
	return new(call).reduce(x.c, send, recv, &op, root).start()
}

// ReduceInit is [ReduceInit] for Bufs.
func (x Bufs) ReduceInit(send, recv Buf, op Op, root int) *Persistent {
	return new(call).reduce(x.c, send, recv, &op, root).prepare()
}

// Allreduce combines the send buffers of all ranks element by element with op
// into recv of every rank, which gets bit-identical results everywhere. Both
// have one length, equal on all ranks. In place: send and recv are the same
// slice. The buffers may be reused at return. Collective.
// MPI 4.1 section 6.9.6.
func Allreduce[T any](c *Comm, send, recv []T, op Op) error {
	return c.Bufs().Allreduce(BufOf(send), BufOf(recv), op)
}

// Iallreduce starts an Allreduce; the buffers belong to the library until the
// request is complete. Collective. MPI 4.1 section 6.12.8.
func Iallreduce[T any](c *Comm, send, recv []T, op Op) Request {
	return c.Bufs().Iallreduce(BufOf(send), BufOf(recv), op)
}

// AllreduceInit prepares an Allreduce. Collective, see [Comm.BarrierInit].
// MPI 4.1 section 6.13.8.
func AllreduceInit[T any](c *Comm, send, recv []T, op Op) *Persistent {
	return c.Bufs().AllreduceInit(BufOf(send), BufOf(recv), op)
}

// Allreduce is [Allreduce] for Bufs.
func (x Bufs) Allreduce(send, recv Buf, op Op) error {
	if made, err := x.c.briefReduce(collectives.OpAllreduce, send, recv, &op, 0, true); made {
		return err
	}
	return new(call).allreduce(x.c, send, recv, &op).run()
}

// Iallreduce is [Iallreduce] for Bufs.
func (x Bufs) Iallreduce(send, recv Buf, op Op) Request {
	return new(call).allreduce(x.c, send, recv, &op).start()
}

// AllreduceInit is [AllreduceInit] for Bufs.
func (x Bufs) AllreduceInit(send, recv Buf, op Op) *Persistent {
	return new(call).allreduce(x.c, send, recv, &op).prepare()
}

// ReduceOne is Reduce of one element, which stays off the heap: the result on
// root, the zero value elsewhere. Collective. MPI 4.1 section 6.9.1.
func ReduceOne[T any](c *Comm, x T, op Op, root int) (T, error) {
	return one(c, x, func(in, out Buf) error { return c.Bufs().Reduce(in, out, op, root) })
}

// AllreduceOne is Allreduce of one element, which stays off the heap.
// Collective. MPI 4.1 section 6.9.6.
func AllreduceOne[T any](c *Comm, x T, op Op) (T, error) {
	return one(c, x, func(in, out Buf) error { return c.Bufs().Allreduce(in, out, op) })
}

func (a *call) reduce(c *Comm, send, recv Buf, op *Op, root int) *call {
	if !a.begin(c, collectives.OpReduce) || !a.root(root) || !a.buffers(send.at(a.isLeaf()), recv.at(a.isRoot())) {
		return a
	}
	x := &a.Args
	switch {
	case a.isLeaf():
		x.Count = a.units(a.In)
		if a.reduction(op) && a.isRoot() && a.length(a.Out, x.Count, toReceive) {
			a.inPlace(a.In, a.Out, 0)
		}
	case a.isRoot():
		x.Count = a.units(a.Out)
		a.reduction(op)
	}
	return a
}

func (a *call) allreduce(c *Comm, send, recv Buf, op *Op) *call {
	return a.alike(c, collectives.OpAllreduce, send, recv, op)
}

// alike builds a reduction whose buffers have one length on all ranks.
func (a *call) alike(c *Comm, kind collectives.Op, send, recv Buf, op *Op) *call {
	if !a.begin(c, kind) || !a.buffers(send, recv) {
		return a
	}
	a.Args.Count = a.units(a.Out)
	if a.length(a.In, a.Args.Count, toSend) && a.reduction(op) {
		a.inPlace(a.In, a.Out, 0)
	}
	return a
}
