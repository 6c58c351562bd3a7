// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gompi/internal/base/fault"
	"gompi/internal/base/group"
	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
	"gompi/internal/core"
	"gompi/mpi"
)

// Role is what a change makes of a process.
type Role uint8

// The roles.
const (
	Joining Role = Role(protocol.RoleJoining)   // it was started for the change
	Staying Role = Role(protocol.RoleStaying)   // it is in the input and in the result
	Leaving Role = Role(protocol.RoleLeaving)   // it is in the input alone
	Beside  Role = Role(protocol.RoleBystander) // it is in none of the sets: Query has told it
)

// String gives the role in lower case.
func (r Role) String() string {
	switch r {
	case Joining:
		return "joining"
	case Staying:
		return "staying"
	case Leaving:
		return "leaving"
	case Beside:
		return "beside"
	}
	return fmt.Sprintf("role %d", uint8(r))
}

// Change is a change of a set as one of the processes sees it whom it concerns. It
// must be consumed: by Commit, or by Complete of one of them. Its methods may be
// called from any goroutine.
type Change struct {
	Input   string   // the set that changes
	Result  string   // what it becomes; "": it stays
	Joining []string // sets of newcomers
	Leaving string   // the set of those who leave; "": nobody
	Role    Role     // of this process

	proc    *mpi.Process
	body    protocol.ChangeBody
	options protocol.Options
	page    *page // of the input; nil: this process is a newcomer
	number  changepage.Change
	kept    *kept // the pages, if there are any; next if this process is in the result
	lost    error // why there is no next
	joined  func() error
	handed  bool // Check has returned it, or will; guarded by the watcher

	board  protocol.Preallocated // of the Result
	turn   chan struct{}         // who waits for the decision, and has early and shared
	early  *mpi.Comm             // over the Result, before the decision
	shared bool                  // the program has early
	mu     sync.Mutex
	// What follows is guarded by mu.
	voted  bool
	over   bool
	comm   *mpi.Comm
	err    error
	nearer time.Time // when it was said of a newcomer
	agreed uint64    // iteration; unknown until known is set
	known  bool
}

func (c *Change) core() *core.Process { return c.proc.Core().Process() }

// name says what everything is called.
func (c *Change) name() {
	if len(c.body.Inputs) > 0 {
		c.Input = c.body.Inputs[0].URI
	}
	for i := range c.body.Inputs {
		if g := c.page; g != nil && c.body.Inputs[i].Number == g.set {
			c.Input = c.body.Inputs[i].URI
		}
	}
	for _, s := range c.body.Joining {
		c.Joining = append(c.Joining, s.URI)
	}
	c.Leaving, c.Result, c.Role = c.body.Leaving.URI, c.body.Result.URI, Role(c.body.Role)
}

// Newcomers is how many processes join by the change. Local.
func (c *Change) Newcomers() (n int) {
	for _, s := range c.body.Joining {
		n += s.Members.Len()
	}
	return n
}

// Kind is what the change does to its input.
func (c *Change) Kind() Kind { return Kind(c.body.Kind) }

type joinedKey struct{}

// joined is the change of a newcomer.
type joined struct {
	once sync.Once
	c    *Change
}

// Joined is the change that this process was started for, for whose sake it is here;
// nil for all others. Each call returns the same one. Local.
func Joined(ctx context.Context) (*Change, error) {
	p, err := mpi.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	cp := p.Core().Process()
	if cp.Change == nil {
		return nil, p.Release(ctx)
	}
	j := cp.Keep(joinedKey{}, func() any { return new(joined) }).(*joined)
	first := false
	j.once.Do(func() {
		first = true
		j.c = &Change{
			proc: p, body: *cp.Change, options: cp.Change.Options, turn: make(chan struct{}, 1),
			joined: func() error { return p.Release(ctx) },
		}
		j.c.name()
	})
	if !first {
		return j.c, p.Release(ctx)
	}
	return j.c, nil
}

// tell says something of the operation.
func (c *Change) tell(op string, kind protocol.Kind) error {
	if err := c.core().Control.Tell(&protocol.Op{Kind: kind, Op: c.body.Op}); err != nil {
		return controlError(c.core().Ctx, op, err)
	}
	return nil
}

// Ready says that this process, a newcomer, is prepared: where the set's watch asks
// for that (Options.Prepare) members see the change only when all newcomers have said
// it. Local.
func (c *Change) Ready() error {
	if c.Role != Joining {
		return newError(mpi.ErrArg, "Ready", fmt.Errorf("this process is %v", c.Role))
	}
	return c.tell("Ready", protocol.KindReadied)
}

// Decline is the error with which a newcomer ends that will not take part, ErrRolledBack: its
// main function returns it, as it does that of Commit, and by that the change is rolled
// back. It must not have called Commit. Local.
func (c *Change) Decline() error {
	if c.Role != Joining {
		return newError(mpi.ErrArg, "Decline", fmt.Errorf("this process is %v", c.Role))
	}
	return c.rolledBack("Decline")
}

// tellNearer is how often a newcomer says at most that it has more.
const tellNearer = 100 * time.Millisecond

// AddBytes says that this process, a newcomer, has got n more bytes of what it prepares:
// with each of them that one of the newcomers has before its Ready, their deadline
// (Deadlines.Ready, --resize-timeout) begins anew, and when all have called Ready, as long
// as members hold the change back (Options.Hold), that of the members (Deadlines.Accept);
// from when the first member was handed the change, that of the votes (Deadlines.Commit).
// Who hangs adds none, and the change is rolled back. Any goroutine may call it. Local.
// Members have Watcher.AddBytes.
func (c *Change) AddBytes(n int) {
	if c.Role == Joining && n > 0 {
		c.nears()
	}
}

// Progress says that this process works on its part of the change, between Check and its
// Commit, or, of a newcomer, before its Commit: each call begins the deadline of the votes
// (Deadlines.Commit, --commit-timeout) anew, of a newcomer also those that AddBytes does.
// A process that works for longer than the deadline calls it several times within each
// deadline; a call is cheap. Deadlines.Whole stands nevertheless. The call does nothing for a
// change that is over, nor in a process that is Beside it. Any goroutine may call it. Local.
func (c *Change) Progress() {
	switch {
	case c.Role == Joining:
		c.nears()
	case c.Role != Beside:
		c.report()
	}
}

// report says on the page of the input that this member works on the change.
func (c *Change) report() {
	c.mu.Lock()
	over := c.over
	if !over && c.page != nil { // another goroutine may end the change meanwhile
		c.page.retain()
	}
	c.mu.Unlock()
	if !over && c.page != nil {
		c.page.member.Report(c.number)
		c.page.release()
	}
}

// nears says that this process, a newcomer, comes nearer to its part of the change.
func (c *Change) nears() {
	c.mu.Lock()
	now := time.Now()
	tells := !c.over && now.Sub(c.nearer) >= tellNearer
	if tells {
		c.nearer = now
	}
	c.mu.Unlock()
	if tells { // who has no connection any more has no change
		_ = c.core().Control.Tell(&protocol.Op{Kind: protocol.KindProgress, Op: c.body.Op})
	}
}

func (c *Change) setAgreed(n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.agreed, c.known = n, true
}

// Iteration is that in which the members of the input are handed the change: all,
// newcomers too, continue behind it. A newcomer waits until the first member was
// handed the change, or until ctx ends; ErrRolledBack if none will be. It is Now for
// loops whose iterations cannot be compared.
func (c *Change) Iteration(ctx context.Context) (int, error) {
	c.mu.Lock()
	n, known := c.agreed, c.known
	c.mu.Unlock()
	if !known {
		if c.page != nil {
			return Now, nil // several hosts, or none
		}
		s, err := c.await(ctx, "Iteration", change.Adopting)
		if err != nil {
			return 0, err
		}
		if !committing(s) {
			return 0, c.rolledBack("Iteration")
		}
		c.mu.Lock()
		n, known = c.agreed, c.known
		c.mu.Unlock()
	}
	if !known || n >= changepage.MaxNumber-1 {
		return Now, nil
	}
	return int(n), nil
}

// await asks the head how far the operation is.
func (c *Change) await(ctx context.Context, op string, until change.State) (change.State, error) {
	ctx, cancel := whileJob(ctx, c.proc)
	defer cancel()
	var b protocol.OpBody
	err := c.core().Control.Ask(ctx, &protocol.Await{Op: c.body.Op, Until: until}, &b)
	switch {
	case c.Role == Joining && errors.Is(err, protocol.ErrNotFound):
		return change.Done, nil // another change has had this process since
	case c.Role == Joining && errors.Is(err, protocol.ErrEnding) && ctx.Err() == nil:
		return change.RolledBack, nil // one beside it could not be started: it will be killed
	case err != nil:
		return 0, controlError(ctx, op, err)
	}
	if b.Iteration > 0 {
		c.setAgreed(b.Iteration - 1)
	}
	return b.State, nil
}

// committing reports whether an operation in s was accepted, and not rolled back.
func committing(s change.State) bool {
	return s == change.Adopting || s == change.Committed || s == change.Done
}

// whileJob is ctx, which ends with the job, too.
func whileJob(ctx context.Context, p *mpi.Process) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	job := p.Context()
	stop := context.AfterFunc(job, func() { cancel(context.Cause(job)) })
	return ctx, func() { stop(); cancel(nil) }
}

func (c *Change) rolledBack(op string) error {
	if c.Role == Joining {
		return newError(ErrRolledBack, op, core.EndDiscarded)
	}
	return newError(ErrRolledBack, op, nil)
}

// groups are those who were there, and those who join; the process's own first.
func (c *Change) groups() (core.Groups, error) {
	var old, join wire.Members
	for _, s := range c.body.Joining {
		join = group.Union(join, s.Members)
	}
	for _, s := range c.body.Inputs {
		old = group.Union(old, s.Members)
	}
	if c.body.Result.Number != 0 { // who has ended is not in it
		stay := group.Difference(c.body.Result.Members, join)
		old = group.Intersection(old, group.Union(stay, c.body.Leaving.Members))
	}
	if join.Len() == 0 {
		return core.Groups{}, errors.New("nobody joins")
	}
	if c.Role == Joining {
		old, join = join, old
	}
	g, f := core.Facing(old, join)
	if f != nil {
		return g, f.Err
	}
	return g, nil
}

// Inter makes the intercommunicator between the processes of the input and the
// newcomers, with which data may be moved before the commit. A change that is rolled
// back revokes it (ErrRevoked and ErrRolledBack). Collective over both.
func (c *Change) Inter(ctx context.Context) (*mpi.Comm, error) {
	const op = "Inter"
	g, err := c.groups()
	if err != nil {
		return nil, newError(mpi.ErrArg, op, err)
	}
	ctx, cancel := whileJob(ctx, c.proc)
	defer cancel()
	tag := fmt.Sprintf("change %d", c.body.Op)
	over := []*core.Output{core.NewOutput(c.body.Op, c.body.Joining[0].Number)}
	var a core.Agreed
	f := c.core().During(ctx, over, func(ctx context.Context) (f *fault.Fault) {
		a, f = c.core().Meet(fault.Call(op), ctx, g, tag)
		return f
	})
	if f != nil {
		return nil, faultError(op, f)
	}
	made, err := c.proc.Core().Make(a, g, tag)
	if err != nil {
		return nil, err
	}
	comm := made.(*mpi.Comm)
	comm.Core().Comm().Over(over)
	return comm, nil
}
