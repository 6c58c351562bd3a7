// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"gompi/internal/base/fault"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// Communicators over sets that a change makes, while that is not decided: if it is
// rolled back they are revoked, and who waits for one to be made is told so. When there
// is the first the head hears of it, and tells the outcome.

// Output is a set of a change that was not decided when the process was told of the set.
type Output struct {
	op, set uint32
	state   change.State // when it is over; guarded by undecided
}

// NewOutput is what a process was told of a set: it came of an operation that is not
// decided; nil: of none, 0.
func NewOutput(op, set uint32) *Output {
	if op == 0 {
		return nil
	}
	return &Output{op: op, set: set}
}

// Undone is why there are no such sets any more, as far as the process knows: nil, or a
// fault.Rollback.
func (p *Process) Undone(over []*Output) error {
	u := &p.undecided
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, o := range over {
		if o.state == change.RolledBack {
			return fault.Rollback(o.op)
		}
	}
	return nil
}

func (o *Output) committed() bool { return o.state == change.Committed }

// undecided are the changes of such communicators of a process.
type undecided struct {
	mu  sync.Mutex
	ops map[uint32]*pending
}

// pending is one of them, of which the head knows. Its context ends, with a
// fault.Rollback, when it is rolled back.
type pending struct {
	ctx    context.Context
	undo   context.CancelCauseFunc
	outs   []*Output
	comms  map[*Comm]struct{}
	enough int // so many are looked through for those that have ended
}

// pend is the change of an output; nil: it is over. mu is held.
func (p *Process) pend(o *Output) *pending {
	u := &p.undecided
	if o.state != 0 {
		return nil
	}
	x := u.ops[o.op]
	if x == nil {
		x = &pending{comms: map[*Comm]struct{}{}, enough: 8}
		x.ctx, x.undo = context.WithCancelCause(context.Background())
		if u.ops == nil {
			u.ops = map[uint32]*pending{}
		}
		u.ops[o.op] = x
		// A connection that is lost ends the job.
		_ = p.Control.Tell(&protocol.Undecided{Op: o.op, Set: o.set})
	}
	if !slices.Contains(x.outs, o) {
		x.outs = append(x.outs, o)
	}
	return x
}

// Decided tells what came of a change. When it was rolled back, what is over its
// outputs is revoked on return.
func (p *Process) Decided(op uint32, committed bool) {
	u := &p.undecided
	u.mu.Lock()
	x := u.ops[op]
	if x == nil {
		u.mu.Unlock()
		return
	}
	delete(u.ops, op)
	for _, o := range x.outs {
		if o.state = change.RolledBack; committed {
			o.state = change.Committed
		}
	}
	u.mu.Unlock()
	if committed {
		return
	}
	x.undo(fault.Rollback(op))
	for c := range x.comms {
		c.RevokeBy(fault.Rollback(op))
	}
}

// During is what do gives for processes that are to meet for a communicator over such
// outputs. Its context ends with user, nil: never, and when a change is rolled back.
func (p *Process) During(user context.Context, over []*Output, do func(user context.Context) *fault.Fault) *fault.Fault {
	if len(over) == 0 {
		return do(user)
	}
	if user == nil {
		user = context.Background()
	}
	ctx, cancel := context.WithCancelCause(user)
	defer cancel(nil)
	for _, o := range over {
		p.undecided.mu.Lock()
		x := p.pend(o)
		p.undecided.mu.Unlock()
		if x != nil {
			defer context.AfterFunc(x.ctx, func() { cancel(context.Cause(x.ctx)) })()
		} else if !o.committed() {
			cancel(fault.Rollback(o.op))
		}
	}
	f := do(ctx)
	if why := p.Undone(over); why != nil && f != nil { // perhaps because newcomers have ended
		f = &fault.Fault{Class: fault.RolledBack, Peer: -1, Err: why}
	}
	return f
}

// Over says that c was made over outputs, before anybody uses it.
func (c *Comm) Over(over []*Output) {
	if len(over) == 0 {
		return
	}
	u := &c.Proc.undecided
	var undone fault.Rollback
	u.mu.Lock()
	c.over = over
	for _, o := range over {
		if x := c.Proc.pend(o); x != nil {
			x.add(c)
		} else if !o.committed() {
			undone = fault.Rollback(o.op)
		}
	}
	u.mu.Unlock()
	if undone != 0 {
		c.RevokeBy(undone)
	}
}

// Outputs are those that c is over, as far as they are not committed.
func (c *Comm) Outputs() []*Output {
	if len(c.over) == 0 {
		return nil
	}
	u := &c.Proc.undecided
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.over), (*Output).committed)
}

func (x *pending) add(c *Comm) {
	if len(x.comms) >= x.enough {
		maps.DeleteFunc(x.comms, func(d *Comm, _ struct{}) bool { return d.Ctx.Ended() })
		x.enough = 2*len(x.comms) + 8
	}
	x.comms[c] = struct{}{}
}

// WorldOutput is the output that the process's world is: of a newcomer whose change is
// not decided.
func (p *Process) WorldOutput() *Output {
	if p.Change == nil || p.changed.Load() != 0 {
		return nil
	}
	return NewOutput(p.Change.Op, p.World.Number)
}

// Discards reports whether err says that the change which the process was started for
// was rolled back.
func (p *Process) Discards(err error) bool {
	var why fault.Rollback
	return errors.Is(err, EndDiscarded) || p.Change != nil && errors.As(err, &why) && uint32(why) == p.Change.Op
}
