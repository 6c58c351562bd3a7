// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"errors"

	"gompi/collectives"
	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/engine"
)

// Two groups that the head brings together (spawn, ports) need no messages to agree: the
// head makes a set whose context ids they use, and tells each group of the other.

// Facing returns the agreement of the processes of two sets on the intercommunicator between
// them. Its context ids are the first ones of the set number ids of a job, which have no other
// use.
func (p *Process) Facing(op fault.Call, job wire.JobID, ids uint32, mine, theirs wire.Set) (Agreed, Groups, *fault.Fault) {
	g, f := Facing(mine.Members, theirs.Members)
	if f != nil {
		return Agreed{}, g, f
	}
	if mine.Members.Index(p.Self) < 0 {
		return Agreed{}, g, wrong(fault.Comm, "process %v is in neither group", p.Self)
	}
	a := Agreed{Op: op, ID: wire.Set{Number: ids}.Context(job, 0), members: g.together()}
	if a.hosts = mine.Hosts.Concat(theirs.Hosts); !g.Low {
		a.hosts = theirs.Hosts.Concat(mine.Hosts)
	}
	return a, g, nil
}

// Entered is the first exchange of a call with several: it returns when all ranks have begun
// the call. If the context of one rank had ended before, the call ends here on all of them,
// and the communicator stays usable. Collective over c.
func (c *Comm) Entered(op fault.Call, user context.Context) *fault.Fault {
	a := c.exchange(op, user, collectives.OpBarrier)
	return c.Run(&a)
}

// AskForAll calls ask, by which one rank asks the head for all ranks that entered a call. The
// context of ask ends with user, with the job, and when the communicator is revoked or a rank
// fails, for then the others do not wait for the answer. The fault is the reason why the head
// did not do it; class is the class of a plain refusal.
func (c *Comm) AskForAll(op fault.Call, user context.Context, class fault.Class, ask func(context.Context) error) *fault.Fault {
	ctx, cancel := c.Proc.WhileJob(user)
	lost := c.lost(ctx, cancel, func(_ int32, failed bool) bool { return failed })
	var f *fault.Fault
	stay := c.Proc.Noted(op) // others wait for this
	err := ask(ctx)
	stay()
	if err != nil {
		f = Refusal(ctx, class, err)
	}
	cancel()
	if l := <-lost; err != nil && l.Class != fault.Cancelled {
		l.Err = cause(l.Err, &l)
		f = &l
	}
	return f
}

// lost sends why the others do not wait any more for what one rank does for all of c, and calls
// cancel: c is revoked, or a rank has failed or left for which needs is true. It sends a
// cancellation when ctx ends.
func (c *Comm) lost(ctx context.Context, cancel func(), needs func(rank int32, failed bool) bool) <-chan fault.Fault {
	lost := make(chan fault.Fault, 1)
	go func() {
		lost <- *c.Engine.Await(&engine.Await{
			Ctx: c.Ctx, User: ctx, Aside: true, Needs: needs,
			Ready: func() (bool, *fault.Fault) { return false, nil },
		})
		cancel()
	}()
	return lost
}

// FromRoot gives all ranks of an intracommunicator that have entered a call the bytes that
// root has, at most limit. Collective over c.
func (c *Comm) FromRoot(op fault.Call, user context.Context, root int, b []byte, limit int) ([]byte, *fault.Fault) {
	head := []uint64{uint64(len(b))}
	told := c.telling(op, user, root, buffer.Words(head))
	if f := c.runOn(&told); f != nil {
		return nil, f
	}
	if head[0] > uint64(limit) {
		return nil, &fault.Fault{Class: fault.Count, Peer: int32(root), Got: int64(head[0]), Want: int64(limit), Err: errors.New("the root tells more than it may")}
	}
	if c.Rank != root {
		b = make([]byte, head[0])
	}
	told = c.telling(op, user, root, buffer.Of(b))
	return b, c.runOn(&told)
}

// Confirmed is the last exchange of a call with several: when it returns, every rank knows
// that the others have the outcome. Collective over c.
func (c *Comm) Confirmed(op fault.Call, user context.Context) *fault.Fault {
	a := c.exchange(op, user, collectives.OpBarrier)
	return c.runOn(&a)
}

// Refusal turns the error of a request to the head into a fault; class is the class of a
// plain refusal. ctx is the caller's.
func Refusal(ctx context.Context, class fault.Class, err error) *fault.Fault {
	f := &fault.Fault{Class: fault.Unreachable, Peer: -1, Err: protocol.Without(err, protocol.ErrRefused)}
	if class == fault.Set || class == fault.Name {
		f.Err = protocol.Without(err, protocol.ErrRefused, protocol.ErrNotFound) // the class says it
	}
	var gone *protocol.GoneError
	switch {
	case ctx.Err() != nil:
		f.Class, f.Err = fault.Cancelled, context.Cause(ctx)
	case errors.Is(err, protocol.ErrRefused), errors.Is(err, protocol.ErrUndecided), errors.Is(err, protocol.ErrNotFound), errors.Is(err, errSingleton):
		f.Class = class
	case errors.As(err, &gone):
		f.Class = fault.ProcFailed
	case errors.Is(err, protocol.ErrEnding):
		f.Class = fault.Aborted
	case errors.Is(err, protocol.ErrClosed):
		f.Class = fault.Finalized
	}
	return f
}

// WhileJob returns a context that ends with ctx, if that is not nil, and with the job.
func (p *Process) WhileJob(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.Ctx, func() { cancel(context.Cause(p.Ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}
