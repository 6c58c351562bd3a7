// SPDX-License-Identifier: Apache-2.0

package dyn

import (
	"context"
	"errors"
	"fmt"

	"gompi/mpi"
	"gompi/sessions"
)

// Status is the state of a change that this process has requested.
type Status uint8

// The states, those of the paper's prototype (dynmpi v1): RC_ANNOUNCED, ...
const (
	Invalid             Status = iota // the change does not happen
	Announced                         // it waits, or can be received
	ConfirmationPending               // a process integrates it
	Finalized                         // all processes have integrated it
)

// String returns the prototype's name of the state.
func (s Status) String() string {
	return [...]string{"INVALID", "ANNOUNCED", "CONFIRMATION_PENDING", "FINALIZED"}[s&3]
}

// Requested is a change that this process has requested.
type Requested struct {
	Delta string // the set of the processes that come or leave
	op    *sessions.Operation
}

// Status returns the state of the change. Local, but for one round trip to the head.
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

// Operation returns the change as an operation of package sessions: Cancel withdraws it,
// Wait waits for its end. Local.
func (r *Requested) Operation() *sessions.Operation { return r.op }

// Free releases the record of the change, which goes on. Local.
func (r *Requested) Free() { r.op.Free() }

// Request requests a plain change of a set: n processes come (Add), or the last n of the
// set leave (Sub). It returns when the delta has a name, which is app://NAME if name is
// given. Processes receive and integrate the change as any other.
//
// One process calls it. Local; it may wait for other changes of the set, also for those that
// this process integrates without waiting. When ctx ends first it withdraws the change.
// Errors: those of sessions.Submit and Operation.Granted.
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
		return nil, newError(mpi.ErrArg, op, fmt.Errorf("a change of the type %v", t))
	}
	if err := d.awaitIdle(ctx, op); err != nil { // integrations without waiting end first, and follow their new sets
		return nil, err
	}
	o, err := sessions.Submit(ctx, q)
	if err != nil {
		return nil, err
	}
	out, err := o.Granted(ctx)
	if err != nil && ctx.Err() != nil && errors.Is(o.Cancel(d.life), mpi.ErrTooLate) {
		out, err = o.Granted(d.life) // a member has got it: too late to withdraw it
	}
	if err == nil {
		if list := out[0].List(); len(list) == 1 {
			return &Requested{list[0], o}, nil
		}
		err = newError(mpi.ErrUnreachable, op, fmt.Errorf("outputs %+v", out))
	}
	o.Free()
	return nil, err
}

// IRequest starts a Request. Local. The result may be read when the request is complete.
func (d *Session) IRequest(ctx context.Context, t Type, set string, n int, name string) (**Requested, mpi.Request) {
	x := new(*Requested)
	return x, d.start("Request", func() (err error) {
		*x, err = d.Request(ctx, t, set, n, name)
		return err
	})
}
