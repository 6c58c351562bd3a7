// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"fmt"

	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
	"gompi/internal/data/kernel"
	"gompi/mpi"
)

const (
	opAccumulate     fault.Call = "rma.Accumulate"
	opGetAccumulate  fault.Call = "rma.GetAccumulate"
	opRAccumulate    fault.Call = "rma.RAccumulate"
	opRGetAccumulate fault.Call = "rma.RGetAccumulate"
	opFetchAndOp     fault.Call = "rma.FetchAndOp"
	opCompareAndSwap fault.Call = "rma.CompareAndSwap"
)

// Accumulate combines buf with the memory of rank target from offset on,
// element by element: t = buf op t, with any predefined operation, also
// mpi.Replace but not mpi.NoOp. Each element is atomic with respect to all accumulates of
// elements of the same basic type at the same place, and those of one rank to
// one place happen in the order of its calls. buf is in use as that of Put
// is. The operation must be defined for T, else ErrOp; elements lie at
// multiples of their size, at most 8. MPI 4.1 section 12.3.4.
func Accumulate[T any](w *Window, buf []T, target, offset int, op mpi.Op) error {
	b := mpi.BufOf(buf).Core()
	if did, err := w.combineNow(opAccumulate, &b, new(buffer.Buf), target, offset, op); did {
		return err
	}
	return second(w.accumulate(opAccumulate, anyEpoch, b, target, offset, b.Count(), b.Type, op))
}

// AccumulateBuf is Accumulate of any elements, see PutBuf: both sides consist
// of one basic type.
func (w *Window) AccumulateBuf(b mpi.Buf, target, offset, count int, dt mpi.Datatype, op mpi.Op) error {
	return second(w.accumulate(opAccumulate, anyEpoch, b.Core(), target, offset, int64(count), dt.Core(), op))
}

// GetAccumulate is Accumulate that reads into result what was in the target's
// memory before; with mpi.NoOp, which takes no buf, it only reads, atomically.
// result has as many elements as buf; neither is to be used before the access is
// complete at the origin, but that buf may be read. The two do not overlap. MPI 4.1 section 12.3.4.
func GetAccumulate[T any](w *Window, buf, result []T, target, offset int, op mpi.Op) error {
	b, r := mpi.BufOf(buf).Core(), mpi.BufOf(result).Core()
	if len(buf) == len(result) && !b.Overlaps(r) {
		if did, err := w.combineNow(opGetAccumulate, &b, &r, target, offset, op); did {
			return err
		}
	}
	return w.GetAccumulateBuf(mpi.BufOf(buf), mpi.BufOf(result), target, offset, len(result), mpi.TypeOf[T](), op)
}

// GetAccumulateBuf is GetAccumulate of any elements, see AccumulateBuf.
func (w *Window) GetAccumulateBuf(b, result mpi.Buf, target, offset, count int, dt mpi.Datatype, op mpi.Op) error {
	return second(w.getAccumulate(opGetAccumulate, anyEpoch, b.Core(), result.Core(), target, offset, int64(count), dt.Core(), op))
}

// RAccumulate is Accumulate with a request of its own, under a lock: when that is
// complete buf may be used again; see RPut. MPI 4.1 section 12.3.5.
func RAccumulate[T any](w *Window, buf []T, target, offset int, op mpi.Op) mpi.Request {
	return w.RAccumulateBuf(mpi.BufOf(buf), target, offset, len(buf), mpi.TypeOf[T](), op)
}

// RAccumulateBuf is RAccumulate of any elements, see AccumulateBuf.
func (w *Window) RAccumulateBuf(b mpi.Buf, target, offset, count int, dt mpi.Datatype, op mpi.Op) mpi.Request {
	p, err := w.accumulate(opRAccumulate, passive, b.Core(), target, offset, int64(count), dt.Core(), op)
	return w.request(opRAccumulate, p, err)
}

// RGetAccumulate is GetAccumulate with a request of its own, under a lock: when
// that is complete both buffers may be used. MPI 4.1 section 12.3.5.
func RGetAccumulate[T any](w *Window, buf, result []T, target, offset int, op mpi.Op) mpi.Request {
	return w.RGetAccumulateBuf(mpi.BufOf(buf), mpi.BufOf(result), target, offset, len(result), mpi.TypeOf[T](), op)
}

// RGetAccumulateBuf is RGetAccumulate of any elements, see AccumulateBuf.
func (w *Window) RGetAccumulateBuf(b, result mpi.Buf, target, offset, count int, dt mpi.Datatype, op mpi.Op) mpi.Request {
	p, err := w.getAccumulate(opRGetAccumulate, passive, b.Core(), result.Core(), target, offset, int64(count), dt.Core(), op)
	return w.request(opRGetAccumulate, p, err)
}

// FetchAndOp is GetAccumulate of one element that waits: it returns what the
// target's memory at offset was before. v stays off the heap; T has at most 16
// bytes. MPI 4.1 section 12.3.4.
func FetchAndOp[T any](w *Window, v T, target, offset int, op mpi.Op) (T, error) {
	code, ok := op.Core()
	if ok {
		if old, ok := fetchNow(w, v, target, offset, code); ok {
			return old, nil
		}
	}
	var zero T
	c, err := w.usable(opFetchAndOp)
	if err != nil || target == mpi.ProcNull {
		return zero, err
	}
	t := mpi.TypeOf[T]().Core()
	if err := c.small(opFetchAndOp, target, t); err != nil {
		return zero, err
	}
	s := c.scalar()
	defer c.spare(s)
	*element[T](&s.value) = v
	in, out := operand[T](&s.value), operand[T](&s.result)
	p, err := w.getAccumulate(opFetchAndOp, anyEpoch, in, out, target, offset, 1, t, op)
	defer p.leave()
	if err == nil {
		err = w.now(opFetchAndOp, p)
	}
	if err != nil {
		return zero, err
	}
	return *element[T](&s.result), nil
}

// CompareAndSwap replaces the element at offset of the memory of rank target by
// value if it equals compare, bit by bit, atomically with respect to all
// accumulates. It waits, and returns what was there before. T has 1, 2, 4, 8 or
// 16 bytes. MPI 4.1 section 12.3.4.
func CompareAndSwap[T any](w *Window, compare, value T, target, offset int) (T, error) {
	if old, ok := swapNow(w, compare, value, target, offset); ok {
		return old, nil
	}
	var zero T
	c, err := w.usable(opCompareAndSwap)
	if err != nil || target == mpi.ProcNull {
		return zero, err
	}
	t := mpi.TypeOf[T]().Core()
	if err := c.small(opCompareAndSwap, target, t); err != nil {
		return zero, err
	}
	p, err := w.place(opCompareAndSwap, anyEpoch, target, offset, 1, t)
	if err != nil {
		return zero, err
	}
	defer p.leave()
	s := c.scalar()
	defer c.spare(s)
	*element[T](&s.compare), *element[T](&s.value) = compare, value
	f := p.CompareAndSwap(operand[T](&s.compare), operand[T](&s.value), operand[T](&s.result), p.at.Off)
	if err = p.done(opCompareAndSwap, f); err == nil {
		err = w.now(opCompareAndSwap, p)
	}
	if err != nil {
		return zero, err
	}
	return *element[T](&s.result), nil
}

// scalar is memory for the operands of one element, to be given back by spare.
func (c *core) scalar() *scalar {
	c.spareMu.Lock()
	s := c.scalars
	if s != nil {
		c.scalars = s.next
	}
	c.spareMu.Unlock()
	if s == nil {
		return new(scalar)
	}
	// What lies between the fields of a struct is compared and moved, too.
	s.value, s.compare = [2]uint64{}, [2]uint64{}
	return s
}

func (c *core) spare(s *scalar) {
	c.spareMu.Lock()
	s.next, c.scalars = c.scalars, s
	c.spareMu.Unlock()
}

// small checks the type of an operation on one element.
func (c *core) small(op fault.Call, rank int, t *dtype.Type) error {
	switch {
	case t.Err != nil:
		return fail(c.comm, mpi.ErrType, op, rank, -1, -1, "", t.Err)
	case t.Size > scalarBytes, op == opCompareAndSwap && t.Size&(t.Size-1) != 0:
		return fail(c.comm, mpi.ErrType, op, rank, t.Size, -1, "bytes", fmt.Errorf("elements of type %s are no operands of it", t.Name))
	}
	return nil
}

// now waits for an access.
func (w *Window) now(op fault.Call, p place) error {
	if !p.PendingLocal() {
		return nil
	}
	return p.done(op, p.FlushLocal(w.user))
}

func (w *Window) accumulate(op fault.Call, need uint64, b buffer.Buf, rank, offset int, count int64, dt *dtype.Type, with mpi.Op) (place, error) {
	p, err := w.place(op, need, rank, offset, count, dt)
	if p.Target == nil {
		return p, err
	}
	code, err := p.combines(op, with)
	if err == nil && code == kernel.NoOp {
		err = fail(p.c.comm, mpi.ErrOp, op, p.rank, -1, -1, "", fmt.Errorf("%v is for accesses that return what was there", with))
	}
	if err != nil {
		return p, err
	}
	if err := p.operand(op, b); err != nil {
		return p, err
	}
	return p, p.done(op, p.Accumulate(b, p.at, code))
}

func (w *Window) getAccumulate(op fault.Call, need uint64, b, result buffer.Buf, rank, offset int, count int64, dt *dtype.Type, with mpi.Op) (place, error) {
	p, err := w.place(op, need, rank, offset, count, dt)
	if p.Target == nil {
		return p, err
	}
	code, err := p.combines(op, with)
	if err != nil {
		return p, err
	}
	if code == kernel.NoOp {
		b = buffer.Buf{}
	} else if err := p.operand(op, b); err != nil {
		return p, err
	}
	if err := p.operand(op, result); err != nil {
		return p, err
	}
	if b.Overlaps(result) {
		return p, fail(p.c.comm, mpi.ErrArg, op, p.rank, -1, -1, "", fmt.Errorf("the buffers overlap"))
	}
	return p, p.done(op, p.GetAccumulate(b, result, p.at, code))
}

// combines finds the operation for the elements at the target.
func (p *place) combines(op fault.Call, with mpi.Op) (kernel.Op, error) {
	code, ok := with.Core()
	base := p.at.Type.Base()
	switch {
	case !ok:
		return code, fail(p.c.comm, mpi.ErrOp, op, p.rank, -1, -1, "", fmt.Errorf("%v: only predefined operations work at a target", with))
	case code == kernel.Replace || code == kernel.NoOp:
		return code, nil
	case base == nil:
		return code, fail(p.c.comm, mpi.ErrType, op, p.rank, -1, -1, "", fmt.Errorf("%s: elements of one basic type are needed", p.at.Type.Name))
	case kernel.Of(code, base.Kind) == nil:
		return code, fail(p.c.comm, mpi.ErrOp, op, p.rank, -1, -1, "", fmt.Errorf("%v of %s", with, base.Name))
	}
	return code, nil
}

// operand checks a buffer of the origin: it fits, and consists of the target's
// basic elements.
func (p *place) operand(op fault.Call, b buffer.Buf) error {
	if err := p.fits(op, b); err != nil {
		return err
	}
	x, y := b.Type.Base(), p.at.Type.Base()
	if b.Bytes() == 0 || x == y || x != nil && y != nil && x.Kind == y.Kind && x.Size == y.Size && x.Kind != dtype.Opaque {
		return nil
	}
	return fail(p.c.comm, mpi.ErrType, op, p.rank, -1, -1, "", fmt.Errorf("%s at the origin, %s at the target, which have other basic elements", b.Type.Name, p.at.Type.Name))
}
