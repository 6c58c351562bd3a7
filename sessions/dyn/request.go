// SPDX-License-Identifier: Apache-2.0

package dyn

import (
	"context"
	"errors"
	"fmt"

	"gompi/mpi"
	"gompi/sessions"
)

// Status is how far a change is that this process has asked for.
type Status uint8

// The states, those of the paper's prototype (dynmpi v1): RC_ANNOUNCED, ...
const (
	Invalid             Status = iota // it does not happen
	Announced                         // it waits, or can be received
	ConfirmationPending               // somebody integrates it
	Finalized                         // all have
)

// String gives the state as the prototype has it.
func (s Status) String() string {
	return [...]string{"INVALID", "ANNOUNCED", "CONFIRMATION_PENDING", "FINALIZED"}[s&3]
}

// Requested is a change that this process has asked for.
type Requested struct {
	Delta string
	op    *sessions.Operation
}

// Status is how far it is. Local, but for one round trip to the head.
func (r *Requested) Status() Status {
	switch s := r.op.State(); {
	case s < sessions.Adopting:
		return Announced
	case s == sessions.Adopting:
		return ConfirmationPending
	case s == sessions.Committed || s == sessions.Done:
		return Finalized
	}
	return Invalid
}

// Operation is what it is for package sessions: Cancel takes it back, Wait waits for
// its end.
func (r *Requested) Operation() *sessions.Operation { return r.op }

// Free tells that nobody asks for it any more: it goes on. Local.
func (r *Requested) Free() { r.op.Free() }

// Request asks for a plain change of a set: n processes that come (Add), or the last n
// of the set leave (Sub). It returns when the delta has a name, which is app://NAME if
// name is given. The change itself is received, and integrated, as any. Local; it may
// wait for other changes of the set, also for those that were integrated without waiting,
// until ctx ends: then the change is taken back. The errors are those of sessions.Submit
// and Granted.
//
// MPI_Session_request_res_change of the paper's prototype (dynmpi v1).
func (d *Session) Request(ctx context.Context, t Type, set string, n int, name string) (*Requested, error) {
	const op = "Request"
	q := sessions.Request{In: []string{set}}
	if name != "" {
		q.Names = []string{name}
	}
	switch t {
	case Add:
		q.Kind, q.Add = sessions.Add, []int{n}
	case Sub:
		q.Kind, q.Sub = sessions.Sub, n
	default:
		return nil, failed(mpi.ErrArg, op, fmt.Errorf("a change of the type %v", t))
	}
	if err := d.settled(ctx, op); err != nil { // what was integrated without waiting, and what is followed since
		return nil, err
	}
	o, err := sessions.Submit(ctx, q)
	if err != nil {
		return nil, err
	}
	out, err := o.Granted(ctx)
	if err != nil && ctx.Err() != nil && errors.Is(o.Cancel(d.life), mpi.ErrTooLate) {
		out, err = o.Granted(d.life) // members have been handed it: it is no longer to be given up
	}
	if err == nil {
		if list := out[0].List(); len(list) == 1 {
			return &Requested{list[0], o}, nil
		}
		err = failed(mpi.ErrUnreachable, op, fmt.Errorf("outputs %+v", out))
	}
	o.Free()
	return nil, err
}

// IRequest starts a Request: what it returns is there when the request is complete.
func (d *Session) IRequest(ctx context.Context, t Type, set string, n int, name string) (**Requested, mpi.Request) {
	x := new(*Requested)
	return x, d.start("Request", func() (err error) {
		*x, err = d.Request(ctx, t, set, n, name)
		return err
	})
}
