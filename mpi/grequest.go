// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"errors"
	"sync"

	"gompi/internal/base/fault"
	"gompi/internal/engine"
)

const (
	opGrequest         fault.Call = "Grequest"
	opGrequestComplete fault.Call = "GrequestComplete"
)

// Grequest is what the library calls of an operation that the program does itself, whose
// request is a generalized one. Each may be nil. They are called on the goroutine of the
// call that is named, and may call anything.
type Grequest struct {
	// Query fills the status of the complete operation, which is empty before: Wait and
	// Test call it, once, and GetStatus, each time. An error of it is that of the operation,
	// and comes out there.
	Query func(st *Status) error
	// Free ends the request: Wait and Test call it after Query, whatever that has said. If
	// Request.Free was called before, whichever call comes last does, that or
	// GrequestComplete. Its error comes out there.
	Free func() error
	// Cancel is Request.Cancel of an operation that is complete or is not. It asks; the
	// operation must be completed still, and Query says whether it was Cancelled.
	Cancel func(complete bool) error
}

// grequest is a generalized request: the owner of the engine's one.
type grequest struct {
	c     *Comm
	calls Grequest

	mu       sync.Mutex
	complete bool // guarded by mu, as is what follows
	freed    bool // Request.Free was called
}

// GrequestStart begins an operation of the program's own: it is complete with
// GrequestComplete, from any goroutine. Its request is waited for, tested and freed alone
// and among others as any request. Local. MPI 4.1 section 13.2, MPI_Grequest_start.
func (p *Process) GrequestStart(g Grequest) Request {
	q := &grequest{c: p.Self(), calls: g}
	return Request{q.c.core.Engine.NewApart(&engine.Context{Owner: q}, opGrequest)}
}

// GrequestComplete completes the operation of a generalized request. A second call, and
// one of any other request, gives ErrRequest. Local. MPI 4.1 section 13.2.
func (r Request) GrequestComplete() error {
	q := r.generalized()
	if q == nil {
		return requestError(opGrequestComplete, "it is no generalized request, or was freed")
	}
	q.mu.Lock()
	twice, freed := q.complete, q.freed
	if q.complete = true; !twice {
		r.h.Engine().Complete(r.h, engine.Status{Source: AnySource, Tag: AnyTag})
	}
	q.mu.Unlock()
	switch {
	case twice:
		return requestError(opGrequestComplete, "it is complete already")
	case freed:
		return q.free()
	}
	return nil
}

// generalized is the generalized request that r is; nil: it is none.
func (r Request) generalized() *grequest {
	e := r.h.Engine()
	if e == nil {
		return nil
	}
	q, _ := e.Owner(r.h).(*grequest)
	return q
}

// finish is how the operation has ended; last: the request is freed.
func (q *grequest) finish(o *engine.Outcome, last bool) (Status, error) {
	st := emptyStatus()
	var err error
	switch f := o.Status.Fault; {
	case f != nil: // the process has ended
		err = q.c.errorOf(o.Op, ProcNull, -1, f)
	case q.calls.Query != nil:
		err = q.calls.Query(&st)
	}
	if last {
		if why := q.free(); err == nil {
			err = why
		}
	}
	return st, err
}

// free calls what frees it.
func (q *grequest) free() error {
	if q.calls.Free == nil {
		return nil
	}
	return q.calls.Free()
}

// cancel is Request.Cancel.
func (q *grequest) cancel() error {
	if q.calls.Cancel == nil {
		return q.c.fail(&argFault{class: ErrRequest, op: opCancel, err: errNoCancel})
	}
	q.mu.Lock()
	complete := q.complete
	q.mu.Unlock()
	return q.calls.Cancel(complete) // which may complete it
}

var errNoCancel = errors.New("the operation cannot be cancelled")

// giveUp is Request.Free.
func (q *grequest) giveUp(r Request) error {
	q.mu.Lock()
	o := r.h.Engine().FreeOther(r.h)
	complete := q.complete
	q.freed = o.Status.Fault == nil
	q.mu.Unlock()
	switch {
	case o.Status.Fault != nil:
		return q.c.errorOf(opFree, ProcNull, -1, o.Status.Fault)
	case complete:
		return q.free()
	}
	return nil
}
