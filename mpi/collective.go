// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"

	"gompi/collectives"
	"gompi/internal/dtype"
	"gompi/internal/engine"
)

const (
	opBarrier    engine.Op = "Barrier"
	opBcast      engine.Op = "Bcast"
	opAllreduce  engine.Op = "Allreduce"
	opAllgather  engine.Op = "Allgather"
	opAllgatherv engine.Op = "Allgatherv"
)

// Barrier returns when every rank has called it. Collective.
// MPI 4.1 section 6.3.
func (c *Comm) Barrier() error {
	a := c.barrier()
	return c.run(&a)
}

// Ibarrier starts a Barrier. Collective. MPI 4.1 section 6.12.1.
func (c *Comm) Ibarrier() Request {
	a := c.barrier()
	return c.start(&a)
}

// Bcast copies buf of rank root to buf of all others; lengths are equal on all
// ranks. Collective; buf may be reused at return. MPI 4.1 section 6.4.
func Bcast[T any](c *Comm, buf []T, root int) error {
	a, err := c.bcast(BufOf(buf), root)
	if err != nil {
		return c.refuse(&a, err)
	}
	return c.run(&a)
}

// Ibcast starts a Bcast; buf belongs to the library until the request is
// complete. Collective. MPI 4.1 section 6.12.2.
func Ibcast[T any](c *Comm, buf []T, root int) Request {
	a, err := c.bcast(BufOf(buf), root)
	if err != nil {
		return c.failedRequest(opBcast, c.refuse(&a, err))
	}
	return c.start(&a)
}

// BcastOne returns root's x on every rank. Collective. MPI 4.1 section 6.4.
func BcastOne[T any](c *Comm, x T, root int) (T, error) {
	s := c.core.proc.scalar()
	defer c.core.proc.putScalar(s)
	t := typeOf[T]()
	if t.Size > scalarBytes {
		b := []T{x}
		err := Bcast(c, b, root)
		return b[0], err
	}
	*scalarIn[T](s) = x
	in, _ := scalarBufs(s, t)
	a, err := c.bcast(Buf{in}, root)
	if err == nil {
		err = c.run(&a)
	}
	return *scalarIn[T](s), err
}

// Allreduce combines the send buffers of all ranks element by element with op
// into recv of every rank, which gets bit-identical results everywhere. Both
// have one length, equal on all ranks. In place: send and recv are the same
// slice. Collective; both may be reused at return. MPI 4.1 section 6.9.6.
func Allreduce[T any](c *Comm, send, recv []T, op Op) error {
	a, err := c.allreduce(BufOf(send), BufOf(recv), &op)
	if err != nil {
		return c.refuse(&a, err)
	}
	return c.run(&a)
}

// Iallreduce starts an Allreduce; the buffers belong to the library until the
// request is complete. Collective. MPI 4.1 section 6.12.8.
func Iallreduce[T any](c *Comm, send, recv []T, op Op) Request {
	a, err := c.allreduce(BufOf(send), BufOf(recv), &op)
	if err != nil {
		return c.failedRequest(opAllreduce, c.refuse(&a, err))
	}
	return c.start(&a)
}

// AllreduceOne is Allreduce of one element, which stays off the heap.
// Collective.
func AllreduceOne[T any](c *Comm, x T, op Op) (T, error) {
	t := typeOf[T]()
	if t.Size > scalarBytes {
		b, r := []T{x}, make([]T, 1)
		err := Allreduce(c, b, r, op)
		return r[0], err
	}
	s := c.core.proc.scalar()
	defer c.core.proc.putScalar(s)
	*scalarIn[T](s) = x
	in, out := scalarBufs(s, t)
	a, err := c.allreduce(Buf{in}, Buf{out}, &op)
	if err == nil {
		err = c.run(&a)
	}
	return *scalarOut[T](s), err
}

// Allgather collects the send buffers of all ranks, which have one length, in
// rank order in recv of every rank: len(recv) is Size times len(send). In
// place: send is the caller's block of recv. Collective; both may be reused at
// return. MPI 4.1 section 6.7.
func Allgather[T any](c *Comm, send, recv []T) error {
	a, err := c.allgather(BufOf(send), BufOf(recv))
	if err != nil {
		return c.refuse(&a, err)
	}
	return c.run(&a)
}

// Iallgather starts an Allgather; the buffers belong to the library until the
// request is complete. Collective. MPI 4.1 section 6.12.5.
func Iallgather[T any](c *Comm, send, recv []T) Request {
	a, err := c.allgather(BufOf(send), BufOf(recv))
	if err != nil {
		return c.failedRequest(opAllgather, c.refuse(&a, err))
	}
	return c.start(&a)
}

// Allgatherv is Allgather of blocks of different lengths: rank i sends
// counts[i] elements, which land at displs[i] of recv (nil: side by side).
// counts and displs are equal on all ranks and belong to the library like the
// buffers. Collective. MPI 4.1 section 6.7.
func Allgatherv[T any](c *Comm, send, recv []T, counts, displs []int) error {
	a, err := c.allgatherv(BufOf(send), BufOf(recv), counts, displs)
	if err != nil {
		return c.refuse(&a, err)
	}
	return c.run(&a)
}

// Iallgatherv starts an Allgatherv. Collective. MPI 4.1 section 6.12.5.
func Iallgatherv[T any](c *Comm, send, recv []T, counts, displs []int) Request {
	a, err := c.allgatherv(BufOf(send), BufOf(recv), counts, displs)
	if err != nil {
		return c.failedRequest(opAllgatherv, c.refuse(&a, err))
	}
	return c.start(&a)
}

func (c *Comm) args(op engine.Op, kind collectives.Op) engine.CollArgs {
	return engine.CollArgs{Op: op, User: c.user, Args: collectives.Args{Op: kind, Rank: c.core.rank, Size: c.core.size}}
}

func (c *Comm) run(a *engine.CollArgs) error {
	if err := c.expired(a.Op, ProcNull, -1); err != nil {
		return err
	}
	if k := c.core.check; k != nil {
		return k.run(c, a)
	}
	c.chooseBlocking(a)
	if f := c.core.e.Collective(c.core.ctx, a); f != nil {
		return c.errorOf(a.Op, -1, -1, f)
	}
	return nil
}

func (c *Comm) start(a *engine.CollArgs) Request {
	if err := c.expired(a.Op, ProcNull, -1); err != nil {
		return c.failedRequest(a.Op, err)
	}
	if k := c.core.check; k != nil {
		return k.start(c, a)
	}
	c.choose(a)
	return Request{c.core.e.Icollective(c.core.ctx, a)}
}

// chooseBlocking is choose for a call that blocks: such calls come in one
// order, so they may use the memory that the ranks share.
func (c *Comm) chooseBlocking(a *engine.CollArgs) {
	a.Args.Shared = c.core.ctx.SharedRoom() / max(1, a.Unit)
	c.choose(a)
}

func (c *Comm) choose(a *engine.CollArgs) {
	a.Alg = c.core.table.Select(&a.Args, int(a.Unit), a.Commutative)
}

func (c *Comm) barrier() engine.CollArgs { return c.args(opBarrier, collectives.OpBarrier) }

func (c *Comm) checkType(op engine.Op, t *dtype.Type) error {
	if t.Err != nil {
		return c.argError(ErrType, op, ProcNull, -1, -1, -1, "", t.Err)
	}
	return nil
}

func (c *Comm) bcast(b Buf, root int) (engine.CollArgs, error) {
	a := c.args(opBcast, collectives.OpBcast)
	if root < 0 || root >= c.core.size {
		return a, c.argError(ErrRoot, opBcast, ProcNull, -1, -1, -1, "", fmt.Errorf("root %d of %d ranks", root, c.core.size))
	}
	if err := c.checkType(opBcast, b.b.Type); err != nil {
		return a, err
	}
	a.Args.Root, a.Args.Count = root, b.b.Count()
	a.Out, a.Unit = b.b, b.b.Type.Size
	return a, nil
}

func (c *Comm) allreduce(send, recv Buf, op *Op) (engine.CollArgs, error) {
	a := c.args(opAllreduce, collectives.OpAllreduce)
	t := recv.b.Type
	if err := c.checkType(opAllreduce, t); err != nil {
		return a, err
	}
	if send.b.Count() != recv.b.Count() {
		return a, c.argError(ErrCount, opAllreduce, ProcNull, -1, send.b.Count(), recv.b.Count(), "elements to send", nil)
	}
	a.Kernel, a.KernelName, a.Commutative = op.on(t), op.name, op.commutative
	if a.Kernel == nil {
		return a, c.argError(ErrOp, opAllreduce, ProcNull, -1, -1, -1, "", fmt.Errorf("%s of %s", op.name, t.Name))
	}
	a.Args.Count = recv.b.Count()
	a.In, a.Out, a.Unit = send.b, recv.b, recv.b.Type.Size
	var err error
	a.Args.InPlace, err = c.inPlace(opAllreduce, send.b, recv.b, 0)
	return a, err
}

// inPlace tells whether in stands where its data lands, at byte at of out; any
// other overlap is an error.
func (c *Comm) inPlace(op engine.Op, in, out engine.Buf, at int64) (bool, error) {
	if !in.Overlaps(out) {
		return false, nil
	}
	if in.Same(out.Part(at, in.Bytes())) {
		return true, nil
	}
	return false, c.argError(ErrArg, op, ProcNull, -1, -1, -1, "", fmt.Errorf("the buffers overlap, and not as in place"))
}

func (c *Comm) allgather(send, recv Buf) (engine.CollArgs, error) {
	a := c.args(opAllgather, collectives.OpAllgather)
	if err := c.checkType(opAllgather, recv.b.Type); err != nil {
		return a, err
	}
	n := send.b.Count()
	if want := n * int64(c.core.size); recv.b.Count() != want {
		return a, c.argError(ErrCount, opAllgather, ProcNull, -1, recv.b.Count(), want, "elements to receive", nil)
	}
	a.Args.Count = n
	a.In, a.Out, a.Unit = send.b, recv.b, recv.b.Type.Size
	var err error
	a.Args.InPlace, err = c.inPlace(opAllgather, send.b, recv.b, send.b.Bytes()*int64(c.core.rank))
	return a, err
}

func (c *Comm) allgatherv(send, recv Buf, counts, displs []int) (engine.CollArgs, error) {
	a := c.args(opAllgatherv, collectives.OpAllgatherv)
	if err := c.checkType(opAllgatherv, recv.b.Type); err != nil {
		return a, err
	}
	bad := func(got, want int64, unit string) (engine.CollArgs, error) {
		return a, c.argError(ErrCount, opAllgatherv, ProcNull, -1, got, want, unit, nil)
	}
	if len(counts) != c.core.size {
		return bad(int64(len(counts)), int64(c.core.size), "counts")
	}
	if displs == nil {
		displs = make([]int, len(counts))
		for i := 1; i < len(counts); i++ {
			displs[i] = displs[i-1] + counts[i-1]
		}
	}
	if len(displs) != c.core.size {
		return bad(int64(len(displs)), int64(c.core.size), "displacements")
	}
	for i, n := range counts {
		if n < 0 || displs[i] < 0 || int64(displs[i]) > recv.b.Count()-int64(n) {
			return a, c.argError(ErrCount, opAllgatherv, i, -1, -1, -1, "", fmt.Errorf("block of rank %d, [%d, %d+%d), lies outside %d elements to receive", i, displs[i], displs[i], n, recv.b.Count()))
		}
	}
	if send.b.Count() != int64(counts[c.core.rank]) {
		return bad(send.b.Count(), int64(counts[c.core.rank]), "elements to send")
	}
	a.Args.Counts, a.Args.Displs = int64s(counts), int64s(displs)
	a.In, a.Out, a.Unit = send.b, recv.b, recv.b.Type.Size
	var err error
	a.Args.InPlace, err = c.inPlace(opAllgatherv, send.b, recv.b, int64(displs[c.core.rank])*a.Unit)
	return a, err
}
