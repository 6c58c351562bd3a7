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

// State is the state of an operation.
type State uint8

// The states, in the order in which they come.
const (
	Queued    State = State(change.Queued)    // it waits for other operations, or for slots
	Granted   State = State(change.Granted)   // processes, names and members are reserved
	Launching State = State(change.Launching) // newcomers start
	Ready     State = State(change.Ready)     // newcomers have joined: members see the change
	Adopting  State = State(change.Adopting)  // the first member got the change
	Committed State = State(change.Committed) // the sets have changed
	Done      State = State(change.Done)      // the processes that leave are gone

	Refused    State = State(change.Refused)    // it was not taken, or became impossible
	Cancelled  State = State(change.Cancelled)  // Cancel has withdrawn it
	RolledBack State = State(change.RolledBack) // it does not happen, and nothing has changed
)

// String returns the state in lower case.
func (s State) String() string { return change.State(s).String() }

// Over reports whether s is the last state of an operation.
func (s State) Over() bool { return change.State(s).Over() }

// Operation is a submitted request for a change. Any goroutine may call its methods. Free
// must follow.
type Operation struct {
	proc    *core.Process
	release func() error

	mu   sync.Mutex
	body protocol.OpBody // the head's last answer
	free bool
}

// Output names the sets that an operation, or a part of one, has made; "" means no set.
type Output struct {
	Joining []string // the sets of newcomers, by position, or one set per host: see Start
	Leaving string   // the set of the processes that leave
	Result  string   // the set that the input becomes
}

// List returns the names by position: leaving, joining, result, of those that the
// operation has made.
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

// Outputs are the outputs of an operation, one for each part.
type Outputs []Output

// Times is when an operation reached its states, by the head's clock: the time of the
// request, and the time from then to each event; 0: the event has not come.
type Times struct {
	Asked   time.Time     // the request
	Granted time.Duration // slots, members and names were reserved
	Ordered time.Duration // the head ordered the first start, or announced the removal
	Ready   time.Duration // all newcomers had joined
	Adopted time.Duration // the first member got the change
	Decided time.Duration // it was committed, or over without a commit
	Gone    time.Duration // the pid of the last leaver was free
}

// Outcome is the state and the result of an operation.
type Outcome struct {
	State   State
	Outputs Outputs
	Times   Times
	// Err is why the change has not happened: a *RefusedError, or an *mpi.Error of class
	// ErrRolledBack or mpi.ErrCancelled; else nil.
	Err error
}

// await waits until the operation is in state until, or over.
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

// outcome returns the outcome that an answer of the head says.
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
// names, members and stores from then on. Local. Errors: that of the outcome if the
// operation ends before; mpi.ErrCancelled when ctx ends.
func (o *Operation) Granted(ctx context.Context) (Outputs, error) {
	b, err := o.await(ctx, "Granted", change.Granted)
	if err != nil {
		return nil, err
	}
	x := o.outcome(&b)
	return x.Outputs, x.Err
}

// Decided waits until the change is committed, or over without a commit. Local. Error:
// mpi.ErrCancelled when ctx ends.
func (o *Operation) Decided(ctx context.Context) (Outcome, error) {
	b, err := o.await(ctx, "Decided", change.Committed)
	if err != nil {
		return Outcome{}, err
	}
	return o.outcome(&b), nil
}

// Wait waits until the operation is over: the change does not happen, or all processes
// that leave by it are gone. Local. Error: mpi.ErrCancelled when ctx ends.
func (o *Operation) Wait(ctx context.Context) (Outcome, error) {
	b, err := o.await(ctx, "Wait", change.Done)
	if err != nil {
		return Outcome{}, err
	}
	return o.outcome(&b), nil
}

// Cancel withdraws the operation, which ends in the state Cancelled. It returns nil as
// well if the operation is over. Local, but for one round trip to the head. Error:
// ErrTooLate if a member got the change before; the members have to commit it then.
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

// State returns the state of the operation now. Local, but for one round trip to the
// head.
func (o *Operation) State() State {
	b, err := o.await(o.proc.Ctx, "State", change.Queued)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		return State(o.body.State)
	}
	return State(b.State)
}

// Update replaces Request.COL of an operation that is not granted yet: what the resource
// manager knows of the job. gompictl ops shows its length. Local, but for one round trip to
// the head. Errors: ErrRefused once the operation is granted; mpi.ErrArg for more than
// 64 KiB.
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

// Free releases the head's record of the operation, which goes on. The caller does not use
// the Operation afterwards. Local.
func (o *Operation) Free() {
	o.mu.Lock()
	free := o.free
	o.free = true
	o.mu.Unlock()
	if !free {
		_ = o.proc.Control.Tell(&protocol.Op{Kind: protocol.KindForget, Op: o.number()}) // a lost connection frees it as well
		_ = o.release()
	}
}
