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

// Commit votes for the change and waits for the decision.
//
// Collective over the living processes of the change's sets, which all vote. A process
// that is Beside the change has no vote: its Commit only waits. The change is committed
// when all have voted, unless it was rolled back before.
//
// Outcomes:
//   - A member that stays and a newcomer get a communicator over the Result, with the
//     ranks of that set. It is nil if the change has no Result, and in a process that is
//     Beside it.
//   - A member that leaves gets ErrLeaving. Its messages are delivered then, and its
//     receives without a message are withdrawn; the error names them. Its main function
//     should return the error: the process ends with status 0.
//   - ErrRolledBack: nothing has changed. A member goes on with the iteration in which it
//     got the change, and so do members that did not get it. A newcomer's main function
//     returns the error.
//   - mpi.ErrCancelled: ctx has ended before the decision. The vote stands, and Commit may
//     be called again.
func (c *Change) Commit(ctx context.Context) (*mpi.Comm, error) {
	return c.consume(ctx, "Commit", false)
}

// Complete commits the change for all members: the others need not vote. They still get
// the change. One process calls it. It commits at once, unless the change was rolled back
// before. Outcomes: those of Commit.
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
	over, declined, comm, err := c.over, c.declined, c.comm, c.err
	c.mu.Unlock()
	if over {
		return comm, err
	}
	if !declined {
		if err := c.prepare(); err != nil {
			return nil, err
		}
		if err := c.vote(op, all); err != nil {
			return nil, err
		}
	}
	stay := c.core().Leaving(op) // the report of blocked calls shows it
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
		if err := c.prepare(); err != nil { // after Decline, of a change that another has completed
			return nil, err
		}
		comm, c.resultComm = c.resultComm, nil
	}
	if c.core().Decided(c.body.Op, committed); committed && c.Role != Beside {
		c.core().Changed(c.body.Op)
		c.core().Renamed(c.body.Inputs, c.body.Result.Members)
	}
	c.end(committed, comm, err)
	return comm, err
}

// Comm returns the communicator over the Result before the decision. Commit returns the
// same one, so attributes, windows and pending requests of it stay when the change is
// committed. When the change is rolled back the communicator is revoked (ErrRevoked and
// ErrRolledBack), and Commit frees it.
//
// Members that stay and newcomers call it. Local, but for a newcomer's round trip to the
// head; no message passes between the members.
//
// Errors: mpi.ErrArg in a process that leaves or is Beside, and if there is no Result;
// ErrRolledBack if the change was rolled back.
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
	if !c.commUsed {
		c.commUsed = true
		c.resultComm.Core().Comm().Over([]*core.Output{core.NewOutput(c.body.Op, c.body.Result.Number)})
	}
	return c.resultComm, nil
}

// stands returns an error if the change was rolled back.
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
// members can use its memory once it falls.
func (c *Change) prepare() error {
	if c.resultComm != nil || c.Role == Leaving || c.Role == Beside || c.body.Result.Number == 0 {
		return nil
	}
	made, err := c.proc.Core().Make(c.core().InSet(c.body.Result))
	if err != nil {
		return err
	}
	c.resultComm = made.(*mpi.Comm)
	c.resultComm.Core().Comm().UseGiven(c.body.Result, c.board)
	return nil
}

// vote gives the vote of this process, or commits for all, unless the process has declined.
func (c *Change) vote(op string, all bool) error {
	c.mu.Lock()
	voted, declined := c.voted, c.declined
	c.voted = voted || !declined
	c.mu.Unlock()
	onPage := c.page != nil && c.body.Votes
	switch {
	case declined:
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

// Decided waits for the decision without a vote of this process, and reports true for a
// commit, false for a rollback. It is for a process that has called Decline, or knows that
// others will end the change. Commit still has to follow, and returns the outcome. Local.
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

// leave ends what this process has begun with others, before it leaves the job. Its
// error is ErrLeaving, or why that failed.
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

// end notes the outcome and releases what the change holds.
func (c *Change) end(committed bool, comm *mpi.Comm, err error) {
	c.mu.Lock()
	c.over, c.comm, c.err = true, comm, err
	c.mu.Unlock()
	if c.resultComm != nil {
		_ = c.resultComm.Free() // rolled back
		c.resultComm = nil
	}
	if c.page != nil {
		if committed && c.body.Result.Number != 0 && !c.options.Stay {
			c.page.over.Store(true)
		}
		c.pages.end(committed)
	}
	if c.release != nil {
		_ = c.release() // the process stays in the job, or has left it
	}
}

// ended reports whether a delivered change is over. If its watcher has to follow another
// set, next is the page of that, and err why there is none.
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
	case c.noPage != nil:
		return true, nil, newError(ErrNoWatch, "Check", c.noPage)
	}
	return true, c.pages.takeResult(), nil
}

// Provide names the set that takes the place of the input of a change without a Result,
// of the kinds Add and Sub. At the commit the set becomes gompi://main if the input is
// that, and it lives like an output. Provide returns the set's own name, which stands for
// the set in all processes and for good.
//
// One process calls it, before its Commit. Local, but for round trips to the head.
//
// Errors: ErrRefused if another process has called it, or if members do not see the change
// yet, or not any more; mpi.ErrArg if the caller was not in the input.
func (c *Change) Provide(ctx context.Context, set string) (string, error) {
	const op = "Provide"
	if c.page == nil || c.Role == Beside {
		return "", newError(mpi.ErrArg, op, fmt.Errorf("this process, which is %v, was not in %s", c.Role, c.Input))
	}
	ref, err := registryOf(c.core()).hold(ctx, set)
	if err != nil {
		return "", controlError(ctx, op, err)
	}
	defer ref.drop()
	if err := c.core().Control.Ask(ctx, &protocol.Provide{Op: c.body.Op, Set: ref.set.Number}, &protocol.Empty{Kind: protocol.KindReply}); err != nil {
		return "", controlError(ctx, op, err)
	}
	return ref.set.URI, nil
}
