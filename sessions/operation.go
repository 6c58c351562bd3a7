// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
	"gompi/internal/core"
	"gompi/mpi"
)

// State is how far an operation is.
type State uint8

// The states, in the order in which they come.
const (
	Queued    State = State(change.Queued)    // what it needs is taken
	Granted   State = State(change.Granted)   // processes, names and members are reserved
	Launching State = State(change.Launching) // newcomers start
	Ready     State = State(change.Ready)     // they have joined: members see the change
	Adopting  State = State(change.Adopting)  // somebody was handed it
	Committed State = State(change.Committed) // it holds
	Done      State = State(change.Done)      // who leaves is gone

	Refused    State = State(change.Refused)
	Cancelled  State = State(change.Cancelled)
	RolledBack State = State(change.RolledBack)
)

// String gives the state in lower case.
func (s State) String() string { return change.State(s).String() }

// Over reports whether nothing comes after s.
func (s State) Over() bool { return change.State(s).Over() }

// Operation is one that was submitted. Its methods may be called from any goroutine.
type Operation struct {
	proc    *core.Process
	release func() error

	mu   sync.Mutex
	body protocol.OpBody // the last that was said
	free bool
}

// Output is the sets that an operation, or a part of one, has made; "" stands for none.
type Output struct {
	Joining []string // of newcomers, by position, or a set a host: see Start
	Leaving string   // of those who leave
	Result  string   // what the input becomes
}

// List is the names, by position: Replace has leaving, joining, result; Grow joining and
// result; Shrink leaving and result; Add and Sub what they have.
func (o *Output) List() []string {
	var list []string
	if o.Leaving != "" {
		list = append(list, o.Leaving)
	}
	list = append(list, o.Joining...)
	if o.Result != "" {
		list = append(list, o.Result)
	}
	return list
}

// Outputs are those of an operation, a value for each part.
type Outputs []Output

// Times is when an operation came how far, as the head saw it: as spans since it was
// asked for, 0 for what has not come.
type Times struct {
	Asked   time.Time
	Granted time.Duration // places, members and names were there
	Ordered time.Duration // the first start, or the news of a removal, was ordered
	Ready   time.Duration // all newcomers were there
	Adopted time.Duration // somebody was handed the change
	Decided time.Duration // it was committed, or over without
	Gone    time.Duration // the last leaver's pid was free
}

// Outcome is what came of an operation.
type Outcome struct {
	State   State
	Outputs Outputs
	Times   Times
	// Err says why it has not happened: a *RefusedError, or an *mpi.Error of class
	// ErrRolledBack or ErrCancelled.
	Err error
}

// await waits until the operation is as far, or over.
func (o *Operation) await(ctx context.Context, op string, until change.State) (protocol.OpBody, error) {
	o.mu.Lock()
	b, free := o.body, o.free
	o.mu.Unlock()
	switch {
	case b.State.Over() || until > change.Queued && b.State >= until && until <= change.Adopting:
		return b, nil
	case free:
		return b, newError(mpi.ErrRequest, op, fmt.Errorf("operation %d was freed", b.Op))
	}
	var next protocol.OpBody
	if err := o.proc.Control.Ask(ctx, &protocol.Await{Op: b.Op, Until: until}, &next); err != nil {
		return b, controlError(ctx, op, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if next.State >= o.body.State {
		o.body = next
	}
	return next, nil
}

// outcome is what an answer of the head says.
func (o *Operation) outcome(b *protocol.OpBody) Outcome {
	t := &b.Times
	x := Outcome{
		State: State(b.State), Outputs: o.outputs(b),
		Times: Times{t.Asked, t.Granted, t.Ordered, t.Ready, t.Adopted, t.Decided, t.Gone},
	}
	switch x.State {
	case Refused:
		x.Err = refusal(o.proc.Self.Job, b)
	case Cancelled:
		x.Err = newError(mpi.ErrCancelled, "Wait", fmt.Errorf("operation %d: %s", b.Op, b.Text))
	case RolledBack:
		x.Err = newError(ErrRolledBack, "Wait", fmt.Errorf("operation %d: %s", b.Op, b.Text))
	}
	return x
}

func (o *Operation) outputs(b *protocol.OpBody) Outputs {
	names := map[uint32]string{}
	for _, n := range b.Names {
		names[n.Number] = n.Name
	}
	name := func(set uint32) string {
		switch n := names[set]; {
		case set == 0:
			return ""
		case n != "":
			return n
		}
		return protocol.SetURI(o.proc.Self.Job, set)
	}
	var list Outputs
	for _, part := range b.Outputs {
		x := Output{Leaving: name(part.Leaving), Result: name(part.Result)}
		for _, s := range part.Joining {
			x.Joining = append(x.Joining, name(s))
		}
		list = append(list, x)
	}
	return list
}

// Granted waits until the operation is granted, and returns its outputs: they have
// names, members and stores from then on. It is the error of the outcome if the
// operation is over before.
func (o *Operation) Granted(ctx context.Context) (Outputs, error) {
	b, err := o.await(ctx, "Granted", change.Granted)
	if err != nil {
		return nil, err
	}
	x := o.outcome(&b)
	return x.Outputs, x.Err
}

// Decided waits until the change is committed, or does not happen.
func (o *Operation) Decided(ctx context.Context) (Outcome, error) {
	b, err := o.await(ctx, "Decided", change.Committed)
	if err != nil {
		return Outcome{}, err
	}
	return o.outcome(&b), nil
}

// Wait waits until the operation is over: it does not happen, or all who leave by it
// are gone.
func (o *Operation) Wait(ctx context.Context) (Outcome, error) {
	b, err := o.await(ctx, "Wait", change.Done)
	if err != nil {
		return Outcome{}, err
	}
	return o.outcome(&b), nil
}

// Cancel withdraws the operation: it ends Cancelled, and nil is returned, unless
// somebody was handed the change before, ErrTooLate: then it must be consumed. Of one
// that is over nil, too.
func (o *Operation) Cancel(ctx context.Context) error {
	const op = "Cancel"
	o.mu.Lock()
	number, over := o.body.Op, o.body.State.Over()
	o.mu.Unlock()
	if over {
		return nil
	}
	var b protocol.OpBody
	if err := o.proc.Control.Ask(ctx, &protocol.Op{Kind: protocol.KindWithdraw, Op: number}, &b); err != nil {
		return controlError(ctx, op, err)
	}
	switch b.State {
	case change.Adopting, change.Committed:
		return newError(ErrTooLate, op, fmt.Errorf("operation %d is %v", number, b.State))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.body = b
	return nil
}

func (o *Operation) number() uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.body.Op
}

// State is how far the operation is.
func (o *Operation) State() State {
	b, err := o.await(o.proc.Ctx, "State", change.Queued)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		return State(o.body.State)
	}
	return State(b.State)
}

// Update gives the manager of resources something else to know of the job, in the place
// of Request.COL: until the operation is granted. After that the error is of class
// ErrRefused. It is at most 64 KiB; gompictl ops shows how long it is. Local, but for one
// round trip to the head.
func (o *Operation) Update(col []byte) error {
	const op = "Update"
	if len(col) > protocol.MaxCOL {
		return newError(mpi.ErrArg, op, fmt.Errorf("%d bytes, at most %d allowed", len(col), protocol.MaxCOL))
	}
	if err := o.proc.Control.Ask(o.proc.Ctx, &protocol.Update{Op: o.number(), COL: col}, &protocol.Empty{}); err != nil {
		return controlError(o.proc.Ctx, op, err)
	}
	return nil
}

// Free tells that nobody will ask for the operation any more, which goes on. It is
// called once for each operation. Local.
func (o *Operation) Free() {
	o.mu.Lock()
	free := o.free
	o.free = true
	o.mu.Unlock()
	if !free {
		_ = o.proc.Control.Tell(&protocol.Op{Kind: protocol.KindForget, Op: o.number()}) // a connection that is lost keeps nothing
		_ = o.release()
	}
}
