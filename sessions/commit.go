// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gompi/internal/control/change"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
	"gompi/internal/core"
	"gompi/mpi"
)

// Commit says that the change may hold as far as this process is concerned, and waits
// until all have said so who are in its sets and live: then the change is committed,
// or it was rolled back before. Members that stay, and newcomers, get a communicator
// over the Result (nil of a change without one, and for who is Beside it and has no
// vote), with the ranks of that set. A member
// that leaves gets ErrLeaving when what it has sent is delivered and what it waits for
// alone was withdrawn, which the error names; its main function should return the
// error, and the process ends with status 0. ErrRolledBack: nothing has changed, and
// the caller goes on with the iteration in which it was handed the change, as those do
// who came later and were not; a newcomer's main function returns the error, likewise. When ctx
// ends before the decision the vote stands, and Commit may be called again. Collective
// over all who vote.
func (c *Change) Commit(ctx context.Context) (*mpi.Comm, error) {
	return c.consume(ctx, "Commit", false)
}

// Complete is Commit for all: the others need not vote, and the change is committed at
// once if it was not rolled back before. They are handed it nevertheless.
func (c *Change) Complete(ctx context.Context) (*mpi.Comm, error) {
	return c.consume(ctx, "Complete", true)
}

func (c *Change) consume(ctx context.Context, op string, all bool) (*mpi.Comm, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, newError(mpi.ErrCancelled, op, context.Cause(ctx))
	}
	c.mu.Lock()
	over, voted, comm, err := c.over, c.voted, c.comm, c.err
	c.mu.Unlock()
	if over {
		return comm, err
	}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.voted = true
	c.mu.Unlock()
	if err := c.vote(op, voted, all); err != nil {
		return nil, err
	}
	stay := c.core().Leaving(op) // a roll call shows who waits
	committed, err := c.decision(ctx, op)
	stay()
	if err != nil {
		return nil, err
	}
	comm, err = nil, nil
	switch {
	case !committed:
		err = c.rolledBack(op)
	case c.Role == Leaving:
		if err = c.leave(ctx, op); !errors.Is(err, ErrLeaving) {
			return nil, err
		}
	default:
		comm, c.early = c.early, nil
	}
	if c.core().Decided(c.body.Op, committed); committed && c.Role != Beside {
		c.core().Changed(c.body.Op)
		c.core().Renamed(c.body.Inputs, c.body.Result.Members)
	}
	c.end(committed, comm, err)
	return comm, err
}

// Comm is the communicator over the Result, before the decision: that which Commit returns,
// so what was made of it (attributes, windows, pending requests) stays when the change is
// committed. When it is rolled back the communicator is revoked (ErrRevoked and
// ErrRolledBack), and freed by Commit. ErrArg on a process that leaves or is Beside, and of
// a change without a Result; ErrRolledBack: nothing comes of the change. Without a message
// between the members; local, but for a newcomer's round trip to the head.
func (c *Change) Comm(ctx context.Context) (*mpi.Comm, error) {
	const op = "Comm"
	if c.Role == Leaving || c.Role == Beside || c.body.Result.Number == 0 {
		return nil, newError(mpi.ErrArg, op, fmt.Errorf("the change makes no communicator of this process, which is %v", c.Role))
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, newError(mpi.ErrCancelled, op, context.Cause(ctx))
	}
	c.mu.Lock()
	over, comm, err := c.over, c.comm, c.err
	c.mu.Unlock()
	if over {
		return comm, err
	}
	if err := c.stands(ctx, op); err != nil {
		return nil, err
	}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	if !c.shared {
		c.shared = true
		c.early.Core().Comm().Over([]*core.Output{core.NewOutput(c.body.Op, c.body.Result.Number)})
	}
	return c.early, nil
}

// stands is an error if the change was rolled back.
func (c *Change) stands(ctx context.Context, op string) error {
	if c.page != nil {
		if s, here := c.page.lines.Decision(c.number); here {
			if s == changepage.RolledBack {
				return c.rolledBack(op)
			}
			return nil
		}
	}
	s, err := c.await(ctx, op, change.Queued)
	if err == nil && s > change.Done {
		err = c.rolledBack(op)
	}
	return err
}

// prepare makes the communicator over the Result, before the decision, so that all
// members use its memory when that falls.
func (c *Change) prepare() error {
	if c.early != nil || c.Role == Leaving || c.Role == Beside || c.body.Result.Number == 0 {
		return nil
	}
	made, err := c.proc.Core().Make(c.core().InSet(c.body.Result))
	if err != nil {
		return err
	}
	c.early = made.(*mpi.Comm)
	c.early.Core().Comm().UseGiven(c.body.Result, c.board)
	return nil
}

// vote says this process's word, or that of all.
func (c *Change) vote(op string, voted, all bool) error {
	onPage := c.page != nil && c.body.Votes
	switch {
	case c.Role == Beside && !all:
	case onPage && all:
		if c.page.lines.Commit(c.number) {
			c.page.decided(c.number)
		}
	case all:
		return c.tell(op, protocol.KindCompleted)
	case voted:
	case onPage:
		switch {
		case !c.page.member.Vote(c.number):
		case c.Role == Leaving && c.body.Result.Number != 0:
			c.page.tell(c.number) // those who stay are woken first
		default:
			c.page.decided(c.number)
		}
	default:
		return c.tell(op, protocol.KindVoted)
	}
	return nil
}

// decision waits until the change is committed or rolled back.
func (c *Change) decision(ctx context.Context, op string) (committed bool, err error) {
	if c.page == nil {
		s, err := c.await(ctx, op, change.Committed)
		return committing(s), err
	}
	ctx, cancel := whileJob(ctx, c.proc)
	defer cancel()
	state, here := changepage.Open, true
	f := c.page.await(ctx, op, func() bool {
		state, here = c.page.lines.Decision(c.number)
		return !here || state == changepage.Committed || state == changepage.RolledBack
	})
	if f != nil {
		return false, faultError(op, f)
	}
	if !here { // the next change has begun on the page
		s, err := c.await(ctx, op, change.Committed)
		return committing(s), err
	}
	return state == changepage.Committed, nil
}

// Decided waits until the change is committed, true, or rolled back, false, without a
// word of this process: for who has found that its part cannot be done, and knows that
// others will end the change. Commit then says what it says. Local.
func (c *Change) Decided(ctx context.Context) (committed bool, err error) {
	c.mu.Lock()
	if c.over {
		defer c.mu.Unlock()
		return !errors.Is(c.err, ErrRolledBack), nil
	}
	if c.page != nil { // another goroutine may end the change meanwhile
		c.page.retain()
		defer c.page.release()
	}
	c.mu.Unlock()
	return c.decision(ctx, "Decided")
}

// leave takes leave of the others. Its error is ErrLeaving, or that it was given up.
func (c *Change) leave(ctx context.Context, op string) error {
	watchersOf(c.proc).dismiss()
	undone, f := c.core().Retire(ctx)
	if f != nil {
		return faultError(op, f)
	}
	var why error = core.EndLeft
	if len(undone) > 0 {
		why = fmt.Errorf("%w; withdrawn: %s", why, strings.Join(undone, ", "))
	}
	return newError(ErrLeaving, op, why)
}

// end notes the outcome.
func (c *Change) end(committed bool, comm *mpi.Comm, err error) {
	c.mu.Lock()
	c.over, c.comm, c.err = true, comm, err
	c.mu.Unlock()
	if c.early != nil {
		_ = c.early.Free() // of the change nothing comes
		c.early = nil
	}
	if c.page != nil {
		if committed && c.body.Result.Number != 0 && !c.options.Stay {
			c.page.over.Store(true)
		}
		c.kept.end(committed)
	}
	if c.joined != nil {
		_ = c.joined() // it goes on being a part of the job, or has left it
	}
}

// ended reports whether a change that was handed out is over; if its watcher has to
// follow another set, next is its page, and err why it cannot.
func (c *Change) ended() (over bool, next *page, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.over:
		s, ok := c.page.lines.Decision(c.number)
		return !ok || s == changepage.RolledBack, nil, nil
	case errors.Is(c.err, ErrRolledBack):
		return true, nil, nil
	case c.err != nil:
		return true, nil, c.err
	case c.lost != nil:
		return true, nil, newError(ErrNoWatch, "Check", c.lost)
	}
	return true, c.kept.goOn(), nil
}
