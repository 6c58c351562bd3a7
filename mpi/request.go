// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"cmp"
	"errors"

	"gompi/internal/base/fault"
	"gompi/internal/engine"
)

// Request is a nonblocking operation: a small value. The zero Request is the null request. A
// request that Wait or Test has completed, or that was freed, is stale: Wait and Test of it
// return ErrRequest, and affect no later operation. MPI 4.1 section 3.7.
type Request struct{ h engine.Handle }

// IsNull reports whether r is the null request.
func (r Request) IsNull() bool { return r.h.IsNull() }

var errStale = errors.New("the request was completed by Wait or Test, or freed, before")

// finish is how a request ended that is freed.
func finish(o *engine.Outcome) (Status, error) { return outcome(o, true) }

func outcome(o *engine.Outcome, last bool) (Status, error) {
	if q, ok := o.Owner.(*grequest); ok {
		return q.finish(o, last)
	}
	st := statusOf(&o.Status, o.Elem)
	if f := o.Status.Fault; f != nil {
		c, _ := o.Owner.(*Comm)
		if o.Op == "" { // nothing is known of the operation
			g := *f
			g.Err = cmp.Or(g.Err, errStale)
			return st, c.errorOf("Wait", ProcNull, -1, &g)
		}
		return st, c.errorOf(o.Op, o.Peer, o.Tag, f)
	}
	return st, nil
}

// Wait blocks until the operation is complete and frees the request. Local in effect, but
// completion may need the peer. One goroutine at a time may wait for a request. On return
// the buffers of the operation may be used. The null request returns at once with an empty
// status. Errors: those of the operation; ErrRequest. MPI 4.1 section 3.7.3.
func (r Request) Wait() (Status, error) {
	e := r.h.Engine()
	if e == nil {
		return r.alone(true)
	}
	o := e.Wait(r.h)
	return finish(&o)
}

// alone is how a request ended that belongs to no process: the null request, or
// one of a call on no communicator.
func (r Request) alone(last bool) (Status, error) {
	if r.IsNull() {
		return emptyStatus(), nil
	}
	o := r.h.Orphan()
	return outcome(&o, last)
}

// Test is Wait without blocking: done is false while the operation goes on. If done is true
// the request is freed. MPI 4.1 section 3.7.3.
func (r Request) Test() (done bool, st Status, err error) {
	e := r.h.Engine()
	if e == nil {
		st, err = r.alone(true)
		return true, st, err
	}
	o := e.Test(r.h)
	if !o.Done {
		return false, Status{}, nil
	}
	st, err = finish(&o)
	return true, st, err
}

// GetStatus is Test that does not free a complete request.
// MPI 4.1 section 3.7.6.
func (r Request) GetStatus() (done bool, st Status, err error) {
	e := r.h.Engine()
	if e == nil {
		st, err = r.alone(false)
		return true, st, err
	}
	o := e.Peek(r.h)
	if !o.Done {
		return false, Status{}, nil
	}
	st, err = outcome(&o, false)
	return true, st, err
}

// Cancel requests that a send or a receive is withdrawn, or calls Cancel of a Grequest.
// Local; it returns at once. The caller must still complete the request, whose status says
// whether it was Cancelled. Error: ErrRequest for other operations, which cannot be cancelled.
// MPI 4.1 section 3.8.4.
func (r Request) Cancel() error {
	e := r.h.Engine()
	if e == nil {
		return r.missing(opCancel)
	}
	if q := r.generalized(); q != nil {
		return q.cancel()
	}
	o := e.Cancel(r.h)
	return refusal(opCancel, &o)
}

// Free releases the request of a send, a receive or a Grequest: the operation completes by
// itself, and reports neither its end nor its errors. Local. The buffer must not be used before
// the program knows by other means that the operation is complete. Error: ErrRequest for other
// operations. MPI 4.1 section 3.7.3.
func (r Request) Free() error {
	e := r.h.Engine()
	if e == nil {
		return r.missing(opFree)
	}
	if q := r.generalized(); q != nil {
		return q.giveUp(r)
	}
	o := e.Free(r.h)
	return refusal(opFree, &o)
}

const (
	opCancel fault.Call = "Cancel"
	opFree   fault.Call = "Free"
)

// missing is the error of op on a request that belongs to no process.
func (r Request) missing(op fault.Call) error {
	if r.IsNull() {
		return requestError(op, "it is null")
	}
	return nil
}

func requestError(op fault.Call, why string) error {
	return &Error{Class: ErrRequest, Op: string(op), Peer: ProcNull, Tag: -1, Got: -1, Want: -1, Err: errors.New(why)}
}

// refusal is the error of op, which could not be applied to a request.
func refusal(op fault.Call, o *engine.Outcome) error {
	if o.Status.Fault == nil {
		return nil
	}
	o.Op = op
	_, err := finish(o)
	return err
}
