// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"fmt"

	"gompi/internal/control/change"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// Set is the name of the set that is followed now: after a commit that has a Result,
// that. Local.
func (w *Watcher) Set() (string, error) {
	if err := w.openHere("Set"); err != nil {
		return "", err
	}
	return protocol.SetURI(w.page.proc.Self.Job, w.page.set), nil
}

// Pending is the change of the followed set that members may be handed now, nil if
// there is none: for interfaces in which one member looks, and tells the others. It is
// information only. The change may still be cancelled, until Accept, Check or Query
// hands it to somebody. Each call returns the same value while the change is there. As
// with Query, members that learn of changes so must not wait for each other's Checks.
// Local; with several hosts it may wait for one round trip to the head.
func (w *Watcher) Pending() (*Change, error) {
	const op = "Pending"
	if err := w.openHere(op); err != nil {
		return nil, err
	}
	g := w.page
	if f := g.awaitAsked(w.proc.Context(), op); f != nil {
		return nil, faultError(op, f)
	}
	n := g.lines.Announced()
	if n == 0 {
		return nil, nil
	}
	if s, ok := g.lines.Decision(n); !ok || s == changepage.RolledBack {
		return nil, nil
	}
	x, err := w.ask(w.proc.Context(), op, g, n, false)
	if x == nil || err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return nil, nil
	}
	return x, nil
}

// Accept hands the caller a change that Pending has returned, as if Check had: from
// then on it cannot be cancelled, and is to be committed. ErrRolledBack: it was taken
// back before. Local.
func (w *Watcher) Accept(c *Change) error {
	const op = "Accept"
	if err := w.openHere(op); err != nil {
		return err
	}
	switch {
	case c == nil || c.page == nil || c.proc != w.proc || c.Role == Beside:
		return newError(mpi.ErrArg, op, errors.New("the change is none of this watcher"))
	case w.pending == c:
		return nil
	case c.page != w.page:
		return c.rolledBack(op) // another change has replaced the set
	}
	ok, first := c.page.lines.Accept(c.number)
	if !ok {
		return c.rolledBack(op)
	}
	x, err := w.handed(op, c.number, first)
	if x == nil && err == nil {
		err = c.rolledBack(op)
	}
	return err
}

// Outcome is how far the change is of which a set came that is not decided, or the sets
// that it was made of: Done of a set of none, and of what is decided. Local, but for the
// head's answer.
func (s *Session) Outcome(set string) (_ State, err error) {
	defer s.raise(&err)
	return s.outcome(s.ctx, "Outcome", set, Queued)
}

// Reached is Outcome when the change is as far as until, at most Committed, or over; or
// the error is that ctx has ended.
func (s *Session) Reached(ctx context.Context, set string, until State) (_ State, err error) {
	defer s.raise(&err)
	return s.outcome(ctx, "Reached", set, min(until, Committed))
}

func (s *Session) outcome(ctx context.Context, op, set string, until State) (State, error) {
	s.mu.Lock()
	if set = canonical(set); set == protocol.EmptyURI {
		defer s.mu.Unlock()
		return Done, s.open(op)
	}
	h, err := s.find(op, set)
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	ctl := s.process().Control
	var d protocol.DescribeBody
	if err := ctl.Ask(ctx, &protocol.Set{Kind: protocol.KindDescribe, Number: h.set.Number}, &d); err != nil {
		return 0, s.fail(classOf(err), op, told(err))
	}
	if d.Op == 0 {
		return Done, nil
	}
	var b protocol.OpBody
	err = ctl.Ask(ctx, &protocol.Await{Op: d.Op, Until: change.State(until)}, &b)
	if errors.Is(err, protocol.ErrNotFound) {
		return RolledBack, nil // it is forgotten, and its newcomers are not gone
	}
	if err != nil {
		return 0, s.fail(classOf(err), op, told(err))
	}
	return State(b.State), nil
}

// Provide names the set that takes the place of the input if the change, which is of
// the kind Add or Sub, has no Result: it becomes gompi://main at the commit if the input
// is that, and lives like an output. It returns the set's own name, which means it for all and
// for good. One process does it, before its Commit. ErrRefused: another one did, or members
// do not see the change, or no more.
func (c *Change) Provide(ctx context.Context, set string) (string, error) {
	const op = "Provide"
	if c.page == nil || c.Role == Beside {
		return "", newError(mpi.ErrArg, op, fmt.Errorf("this process, which is %v, was not in %s", c.Role, c.Input))
	}
	h, err := registryOf(c.core()).hold(ctx, set)
	if err != nil {
		return "", controlError(ctx, op, err)
	}
	defer h.drop()
	if err := c.core().Control.Ask(ctx, &protocol.Provide{Op: c.body.Op, Set: h.set.Number}, &protocol.Empty{Kind: protocol.KindReply}); err != nil {
		return "", controlError(ctx, op, err)
	}
	return h.set.URI, nil
}
