// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"fmt"

	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/data/dtype"
	"gompi/internal/engine/remote"
	"gompi/mpi"
)

const (
	opPut  fault.Call = "rma.Put"
	opGet  fault.Call = "rma.Get"
	opRPut fault.Call = "rma.RPut"
	opRGet fault.Call = "rma.RGet"
)

// Put writes buf to the memory of rank target from offset on. buf must not be
// changed before the access is complete at the origin: FlushLocal, or what ends
// the epoch; the elements are there when it is complete at the target: Flush, or
// what ends the epoch. An access outside the target's memory is ErrRMARange and
// touches nothing; one that fails on its way is an error of the call that
// completes it. target may be mpi.ProcNull, as in all accesses. MPI 4.1 section
// 12.3.1.
func Put[T any](w *Window, buf []T, target, offset int) error {
	b := mpi.BufOf(buf).Core()
	if w.putNow(&b, target, offset) {
		return nil
	}
	return second(w.put(opPut, anyEpoch, b, target, offset, b.Count(), b.Type))
}

// PutBuf is Put of any elements: b becomes count elements of dt at the target,
// displacement 0 of the first at offset. Both sides have the same number of
// bytes.
func (w *Window) PutBuf(b mpi.Buf, target, offset, count int, dt mpi.Datatype) error {
	return second(w.put(opPut, anyEpoch, b.Core(), target, offset, int64(count), dt.Core()))
}

// Get reads from the memory of rank target, from offset on, into buf, which
// must not be used before the access is complete at the origin (FlushLocal, or
// what ends the epoch). MPI 4.1 section 12.3.2.
func Get[T any](w *Window, buf []T, target, offset int) error {
	b := mpi.BufOf(buf).Core()
	if w.getNow(&b, target, offset) {
		return nil
	}
	return second(w.get(opGet, anyEpoch, b, target, offset, b.Count(), b.Type))
}

// GetBuf is Get of any elements, see PutBuf.
func (w *Window) GetBuf(b mpi.Buf, target, offset, count int, dt mpi.Datatype) error {
	return second(w.get(opGet, anyEpoch, b.Core(), target, offset, int64(count), dt.Core()))
}

// RPut is Put with a request of its own, under a lock: when that is complete buf
// may be used again. The elements are at the target after Flush, of which an
// access that fails later is an error. MPI 4.1 section 12.3.5.
func RPut[T any](w *Window, buf []T, target, offset int) mpi.Request {
	return w.RPutBuf(mpi.BufOf(buf), target, offset, len(buf), mpi.TypeOf[T]())
}

// RPutBuf is RPut of any elements, see PutBuf.
func (w *Window) RPutBuf(b mpi.Buf, target, offset, count int, dt mpi.Datatype) mpi.Request {
	p, err := w.put(opRPut, passive, b.Core(), target, offset, int64(count), dt.Core())
	return w.request(opRPut, p, err)
}

// RGet is Get with a request of its own, under a lock: when that is complete
// the elements are in buf, which may be used. MPI 4.1 section 12.3.5.
func RGet[T any](w *Window, buf []T, target, offset int) mpi.Request {
	return w.RGetBuf(mpi.BufOf(buf), target, offset, len(buf), mpi.TypeOf[T]())
}

// RGetBuf is RGet of any elements, see PutBuf.
func (w *Window) RGetBuf(b mpi.Buf, target, offset, count int, dt mpi.Datatype) mpi.Request {
	p, err := w.get(opRGet, passive, b.Core(), target, offset, int64(count), dt.Core())
	return w.request(opRGet, p, err)
}

func (w *Window) put(op fault.Call, need uint64, b buffer.Buf, rank, offset int, count int64, dt *dtype.Type) (place, error) {
	p, err := w.place(op, need, rank, offset, count, dt)
	if p.Target == nil {
		return p, err
	}
	if err := p.fits(op, b); err != nil {
		return p, err
	}
	return p, p.done(op, p.Put(b, p.at))
}

func (w *Window) get(op fault.Call, need uint64, b buffer.Buf, rank, offset int, count int64, dt *dtype.Type) (place, error) {
	p, err := w.place(op, need, rank, offset, count, dt)
	if p.Target == nil {
		return p, err
	}
	if err := p.fits(op, b); err != nil {
		return p, err
	}
	return p, p.done(op, p.Get(b, p.at))
}

// second ends the access to a place, of which only the error is wanted.
func second(p place, err error) error {
	p.leave()
	return err
}

// place is elements in the memory of a target, which is being accessed until
// leave. Without a Target there is nothing to do.
type place struct {
	*remote.Target
	c    *core
	of   *target
	rank int
	at   remote.Layout
	from remote.Mark // what the access has begun comes after it
}

func (p *place) leave() {
	if p.of != nil {
		p.of.leave()
	}
}

// place finds elements of a target for an access that needs one of some kinds
// of epochs, or says why they must not be accessed.
func (w *Window) place(op fault.Call, need uint64, rank, offset int, count int64, dt *dtype.Type) (place, error) {
	c, err := w.usable(op)
	if err != nil || rank == mpi.ProcNull {
		return place{}, err
	}
	switch {
	case dt.Err != nil:
		return place{}, fail(c.comm, mpi.ErrType, op, rank, -1, -1, "", dt.Err)
	case count < 0:
		return place{}, fail(c.comm, mpi.ErrCount, op, rank, -1, -1, "", fmt.Errorf("%d elements", count))
	}
	t, err := w.admit(op, need, rank)
	if err != nil {
		return place{}, err
	}
	lo, hi, ok := int64(0), int64(0), true
	if count > 0 && dt.Size > 0 {
		lo, hi, ok = dt.Reach(count)
	}
	if c.flavor == FlavorDynamic {
		p, err := w.placeAttached(op, t, int64(offset), lo, hi, ok, dt, count)
		if err != nil {
			t.leave()
		}
		return p, err
	}
	if !ok || offset < 0 || int64(offset) > t.last || hi > t.size-int64(offset)*t.unit || lo < -int64(offset)*t.unit {
		t.leave()
		return place{}, c.outside(op, t, offset, lo, hi)
	}
	return place{t.Target, c, t, rank, remote.Layout{Off: int64(offset) * t.unit, Type: dt, Count: count}, t.Mark()}, nil
}

// outside is the error of an access outside a target's memory.
func (c *core) outside(op fault.Call, t *target, offset int, lo, hi int64) error {
	return fail(c.comm, mpi.ErrRMARange, op, t.rank, hi-lo, -1, "bytes", fmt.Errorf(
		"they begin %d bytes from offset %d, in units of %d bytes, of a memory of %d bytes", lo, offset, t.unit, t.size))
}

// admit finds a target that some epoch admits accesses to, for an access that
// leaves it.
func (w *Window) admit(op fault.Call, need uint64, rank int) (*target, error) {
	c := w.core
	t, err := c.reach(op, rank)
	if err != nil {
		return nil, err
	}
	for {
		now := t.open.Add(oneAccess)
		if now&ending == 0 && (now|c.admitted.Load())&need != 0 {
			return t, nil
		}
		t.leave()
		if now&ending != 0 {
			return nil, c.gone(op)
		}
		if need&byFence != 0 && c.admitted.Load()&offered != 0 {
			c.admitted.Or(byFence)
			continue
		}
		if !c.lockedAll() {
			break
		}
		if err := w.lockFirst(op, t); err != nil {
			return nil, err
		}
	}
	what := "no epoch admits accesses"
	if need == passive {
		what = "no lock is held"
	}
	return nil, c.misplaced(op, rank, what)
}

// fits checks that the origin has as many bytes as the target.
func (p *place) fits(op fault.Call, b buffer.Buf) error {
	switch want := p.at.Count * p.at.Type.Size; {
	case b.Type.Err != nil:
		return fail(p.c.comm, mpi.ErrType, op, p.rank, -1, -1, "", b.Type.Err)
	case b.Bytes() != want:
		return fail(p.c.comm, mpi.ErrCount, op, p.rank, b.Bytes(), want, "bytes at the origin", nil)
	}
	return nil
}

// done is how an access has begun.
func (p *place) done(op fault.Call, f *fault.Fault) error {
	return p.c.fault(op, p.rank, f)
}

// request is a request for what an access has begun.
func (w *Window) request(op fault.Call, p place, err error) (r mpi.Request) {
	defer p.leave()
	switch {
	case w == nil:
		panic(err)
	case err != nil:
		*r.Core() = w.core.comm.Core().Failed(err)
	case p.Target == nil || !p.PendingLocal():
		*r.Core() = w.core.comm.Core().Completed(op)
	default:
		*r.Core() = p.Request(op, w.core.ctx, int32(p.rank), p.from)
	}
	return r
}
