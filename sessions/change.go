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

// Role is the part that a process has in a change.
type Role uint8

// The roles.
const (
	Joining Role = Role(protocol.RoleJoining)   // it was started for the change
	Staying Role = Role(protocol.RoleStaying)   // it is in the input and in the result
	Leaving Role = Role(protocol.RoleLeaving)   // it is in the input alone
	Beside  Role = Role(protocol.RoleBystander) // it is not in the change's sets: it got the change from Query
)

// String returns the role in lower case.
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

// Change is a change of a set, as one process sees it that takes part in it. Each of
// these processes must call Commit, or one of them Complete. Any goroutine may call its
// methods.
type Change struct {
	Input   string   // the set that changes
	Result  string   // the set that it becomes; "": it stays
	Joining []string // the sets of newcomers
	Leaving string   // the set of the processes that leave; "": none leave
	Role    Role     // of this process

	proc      *mpi.Process
	body      protocol.ChangeBody
	options   protocol.Options
	page      *page // of the input; nil: this process is a newcomer
	number    changepage.Change
	pages     *changePages // that it retains; next only if this process is in the result
	noPage    error        // why there is no next
	release   func() error // of a newcomer: ends its hold on the process
	delivered bool         // a call has returned it, or will; guarded by Watcher.fetching

	board      protocol.Preallocated // of the Result
	turn       chan struct{}         // held by the call that waits for the decision; guards the two below
	resultComm *mpi.Comm             // over the Result, before the decision
	commUsed   bool                  // Comm has returned resultComm

	mu sync.Mutex
	// What follows is guarded by mu.
	voted          bool
	declined       bool // this process takes no part, and does not vote
	over           bool // committed or rolled back: comm and err are the outcome
	comm           *mpi.Comm
	err            error
	reported       time.Time // of a newcomer: its last progress report
	iteration      uint64    // in which members get it, if iterationKnown
	iterationKnown bool
}

func (c *Change) core() *core.Process { return c.proc.Core().Process() }

// name fills in the exported fields.
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

// Newcomers returns how many processes join by the change. Local.
func (c *Change) Newcomers() (n int) {
	for _, s := range c.body.Joining {
		n += s.Members.Len()
	}
	return n
}

// Kind returns what the change does to its input. Local.
func (c *Change) Kind() Kind { return Kind(c.body.Kind) }

type joinedKey struct{}

// joined holds the change of a newcomer.
type joined struct {
	once sync.Once
	c    *Change
}

// Joined returns the change that this process was started for, nil in a process that
// was not started for a change. Each call returns the same value. Local.
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
			release: func() error { return p.Release(ctx) },
		}
		j.c.name()
	})
	if !first {
		return j.c, p.Release(ctx)
	}
	return j.c, nil
}

// tell sends the head a message about the operation.
func (c *Change) tell(op string, kind protocol.Kind) error {
	if err := c.core().Control.Tell(&protocol.Op{Kind: kind, Op: c.body.Op}); err != nil {
		return controlError(c.core().Ctx, op, err)
	}
	return nil
}

// Ready says that this newcomer is prepared. Under Options.Prepare members see the
// change only when all newcomers have called Ready. Only newcomers call it. Local.
// Error: mpi.ErrArg in any other process.
func (c *Change) Ready() error {
	if c.Role != Joining {
		return newError(mpi.ErrArg, "Ready", fmt.Errorf("this process is %v", c.Role))
	}
	return c.tell("Ready", protocol.KindReadied)
}

// Decline takes this process out of the change, in place of Commit, because its part failed for
// this reason, which may be nil. The change is rolled back for all processes at once, unless
// another process has committed it by Complete before: the others get ErrRolledBack, and the
// operation's error names this process, with the first 1 KiB of the reason. Any member that got
// the change may call it, and any newcomer. A vote binds: after Commit or Complete, also after
// one that ErrCancelled ended, Decline does nothing. Decline waits for no process. A later
// Commit does not vote, and returns the decision. A newcomer's main function may return the
// error of Decline instead: ErrRolledBack, which wraps the reason. In other processes Decline
// returns nil; of a change that is over it returns the error of Commit. Any goroutine may call
// it. Local. Error: mpi.ErrArg in a process that is Beside the change.
func (c *Change) Decline(reason error) error {
	const op = "Decline"
	if c.Role == Beside {
		return newError(mpi.ErrArg, op, fmt.Errorf("this process is %v", c.Role))
	}
	c.mu.Lock()
	over, voted, err, first := c.over, c.voted, c.err, !c.declined
	c.declined = c.declined || !over && !voted
	c.mu.Unlock()
	switch {
	case over:
		return err
	case voted:
		return nil
	}
	if first {
		text := ""
		if reason != nil {
			text = reason.Error()
		}
		if err := c.core().Control.Say(&protocol.Decline{Op: c.body.Op, Reason: text}); err != nil {
			return controlError(c.core().Ctx, op, err)
		}
	}
	if c.Role != Joining {
		return nil
	}
	var why error = core.EndDiscarded
	if reason != nil {
		why = fmt.Errorf("%w: %w", why, reason)
	}
	return newError(ErrRolledBack, op, why)
}

// reportEvery is the least time between two progress reports of a newcomer.
const reportEvery = 100 * time.Millisecond

// AddBytes reports that this newcomer has received n more bytes of the data that it
// prepares. A report begins one deadline anew, so that a change that moves data is not
// rolled back:
//   - until all newcomers have called Ready: theirs (Deadlines.Ready, --resize-timeout);
//   - then, while members hold the change back (Options.Hold): that of the members
//     (Deadlines.Accept);
//   - once the first member got the change: that of the votes (Deadlines.Commit).
//
// A call in a process that is not a newcomer does nothing; members have
// Watcher.AddBytes. Any goroutine may call it. Local.
func (c *Change) AddBytes(n int) {
	if c.Role == Joining && n > 0 {
		c.reportJoining()
	}
}

// Progress reports that this process works on its part of the change: a member between
// Check and its Commit, a newcomer before its Commit. Each call begins the deadline of the
// votes (Deadlines.Commit, --commit-timeout) anew, and that of a newcomer also the deadlines
// that AddBytes begins anew. Deadlines.Whole goes on.
//
// A process that works for longer than the deadline calls it several times within each
// deadline; a call is cheap. It does nothing for a change that is over, nor in a process
// that is Beside the change. Any goroutine may call it. Local.
func (c *Change) Progress() {
	switch {
	case c.Role == Joining:
		c.reportJoining()
	case c.Role != Beside:
		c.report()
	}
}

// report writes on the page of the input that this member works on the change.
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

// reportJoining tells the head that this newcomer works on the change.
func (c *Change) reportJoining() {
	c.mu.Lock()
	now := time.Now()
	due := !c.over && now.Sub(c.reported) >= reportEvery
	if due {
		c.reported = now
	}
	c.mu.Unlock()
	if due { // a process that has lost its connection has no change any more
		_ = c.core().Control.Tell(&protocol.Op{Kind: protocol.KindProgress, Op: c.body.Op})
	}
}

func (c *Change) setIteration(n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.iteration, c.iterationKnown = n, true
}

// Iteration returns the iteration in which the members of the input get the change. All
// processes, newcomers too, continue behind it. It is Now for loops whose iterations cannot
// be compared.
//
// Local in a member. A newcomer waits until the first member got the change.
//
// Errors, of a newcomer: ErrRolledBack if no member will get the change; mpi.ErrCancelled
// when ctx ends.
func (c *Change) Iteration(ctx context.Context) (int, error) {
	c.mu.Lock()
	n, known := c.iteration, c.iterationKnown
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
		n, known = c.iteration, c.iterationKnown
		c.mu.Unlock()
	}
	if !known || n >= changepage.MaxNumber-1 {
		return Now, nil
	}
	return int(n), nil
}

// await waits until the operation is in state until, or over, and returns its state.
func (c *Change) await(ctx context.Context, op string, until change.State) (change.State, error) {
	ctx, cancel := whileJob(ctx, c.proc)
	defer cancel()
	var b protocol.OpBody
	err := c.core().Control.Ask(ctx, &protocol.Await{Op: c.body.Op, Until: until}, &b)
	switch {
	case c.Role == Joining && errors.Is(err, protocol.ErrNotFound):
		return change.Done, nil // another change has concerned this process since
	case c.Role == Joining && errors.Is(err, protocol.ErrEnding) && ctx.Err() == nil:
		return change.RolledBack, nil // another newcomer could not be started: this one will be killed
	case err != nil:
		return 0, controlError(ctx, op, err)
	}
	if b.Iteration > 0 {
		c.setIteration(b.Iteration - 1)
	}
	return b.State, nil
}

// committing reports whether an operation in s was accepted, and not rolled back.
func committing(s change.State) bool {
	return s == change.Adopting || s == change.Committed || s == change.Done
}

// whileJob returns ctx with the job's end as a further end.
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

// groups returns the old members and the newcomers; the group of this process is first.
func (c *Change) groups() (core.Groups, error) {
	var old, join wire.Members
	for _, s := range c.body.Joining {
		join = group.Union(join, s.Members)
	}
	for _, s := range c.body.Inputs {
		old = group.Union(old, s.Members)
	}
	if c.body.Result.Number != 0 { // processes that have ended are not in it
		stay := group.Difference(c.body.Result.Members, join)
		old = group.Intersection(old, group.Union(stay, c.body.Leaving.Members))
	}
	if join.Len() == 0 {
		return core.Groups{}, errors.New("the change has no newcomers")
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
// newcomers, for moving data before the commit. Collective over both groups. A change
// that is rolled back revokes it (ErrRevoked and ErrRolledBack). Error: mpi.ErrArg if the
// change has no newcomers.
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
