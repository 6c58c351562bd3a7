// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"errors"
	"slices"
	"time"

	"gompi/mpi"
	"gompi/sessions"
)

// userPhase is one call of the user function on all; over says whether it was the last
// one.
func (a *adoption) userPhase() (over bool, err error) {
	if !a.user {
		return true, nil
	}
	start := time.Now()
	u := &User{NS: a.times.NS, ND: a.times.ND, Role: a.role(), Comm: a.both, Sources: slices.Clone(a.from), Targets: slices.Clone(a.to)}
	u.progress = a.c.Progress
	a.calls++
	u.Progress()
	if err := a.m.user(u); err != nil {
		a.unwilling = true
		return false, err
	}
	u.Progress()
	resumed := 1
	if a.old >= 0 && !u.resumed {
		resumed = 0
	}
	resumed, err = mpi.AllreduceOne(a.both, resumed, mpi.Min)
	a.times.User += time.Since(start)
	return resumed == 1, err
}

// finish moves what is left, and tells newcomers where the loop is.
func (a *adoption) finish() error {
	if err := a.moveAll(Variable); err != nil {
		return err
	}
	if !a.user {
		return nil
	}
	// Each call but the first was a Checkpoint of the sources, unless one has waited.
	at, err := mpi.BcastOne(a.both, a.m.iteration, a.first())
	a.m.iteration = at
	return err
}

// commit ends a change: with the new ranks and data, or as if it had not been.
func (m *Module) commit() (State, error) {
	a := m.adopting
	start := time.Now()
	comm, err := a.c.Commit(m.ctx)
	if err != nil {
		return m.failed(a.c, err)
	}
	a.times.Commit = time.Since(start)
	settled := a.settle()
	a.close()
	m.adopting = nil
	for _, x := range a.moves {
		if x.fresh != nil && !x.One {
			m.leave(x.given)
			x.given = x.block
		}
		if x.fresh != nil && x.store != nil {
			x.store(x.fresh)
		} else if x.fresh != nil {
			x.came = x.fresh
		}
		a.times.Bytes, a.times.Again = a.times.Bytes+x.from, a.times.Again+x.again
		if !x.Replicated {
			x.split, x.Rule = x.next, x.rule
		}
	}
	m.hide()
	err = settled
	if m.made {
		err = errors.Join(err, m.comm.Free())
	}
	if m.own != nil {
		err = errors.Join(err, m.own.Free())
		m.own = nil
	}
	m.comm, m.made, m.set, m.asked, m.target = comm, true, a.c.Result, m.wish, 0
	err = errors.Join(err, m.span(a.c.Joining...))
	m.release(a.c)
	m.mu.Lock()
	m.closeGate()
	m.coming = nil
	m.mu.Unlock()
	a.times.Total = time.Since(a.since)
	a.times.Hot = a.hot()
	a.times.Method, a.times.Strategy = a.config.Method, a.config.Strategy
	if m.config.Method == InPlace {
		a.times.Method = InPlace
	}
	m.times = a.times
	return Completed, err
}

// release lets go of the sets of a change that are not needed any more.
func (m *Module) release(c *sessions.Change) {
	for _, name := range append([]string{c.Input, c.Leaving}, c.Joining...) {
		if name != "" {
			_ = m.s.Release(name)
		}
	}
}

// failed ends a change of which nothing comes on this process: the others are told at once
// that it takes no part, and the change is rolled back. The error is nil if that is for the
// end of another process, or as the change was rolled back before.
func (m *Module) failed(c *sessions.Change, err error) (State, error) {
	byUser := false
	if a := m.adopting; a != nil {
		byUser = a.unwilling
		a.close()
		m.adopting = nil
	}
	if c.Role == sessions.Joining {
		return NotStarted, m.undone(c, err, byUser)
	}
	if errors.Is(err, mpi.ErrLeaving) {
		return NotStarted, err
	}
	echo := isEcho(err)
	if committed, asked := m.decline(c, err, echo); asked != nil || committed {
		return NotStarted, errors.Join(err, asked)
	}
	if _, verdict := c.Commit(m.ctx); !errors.Is(verdict, mpi.ErrRolledBack) {
		return NotStarted, errors.Join(err, verdict)
	}
	m.releaseAll(c)
	if echo {
		err = nil
	}
	return NotStarted, err
}

// echoWait is how long a process that has failed for the end of another, or since another has
// declined the change, waits for the head to roll it back for that, which is the better reason.
const echoWait = 2 * time.Second

// decline says that this process takes no part in a change, for an error of its own or an
// echo, and waits for the decision.
func (m *Module) decline(c *sessions.Change, err error, echo bool) (committed bool, asked error) {
	if echo {
		ctx, cancel := context.WithTimeout(m.ctx, echoWait)
		committed, asked = c.Decided(ctx)
		if cancel(); asked == nil {
			return committed, nil
		}
	}
	_ = c.Decline(err) // an error: there is no connection, as Decided will say
	return c.Decided(m.ctx)
}

// isEcho reports whether a change fails on this process for the end of another one, or what
// another has found, for which the change is rolled back; or as it was. Data that is lost is
// to be told.
func isEcho(err error) bool {
	if errors.As(err, new(*LostError)) {
		return false
	}
	return gone(err) || errors.Is(err, mpi.ErrRolledBack) || errors.Is(err, errStale) || errors.Is(err, errMissed)
}

// releaseAll lets go of all sets of a change that was rolled back.
func (m *Module) releaseAll(c *sessions.Change) {
	m.release(c)
	_ = m.s.Release(c.Result)
}

// gone reports whether a move has failed since a process is gone, or has given up, for which
// the change will be rolled back: who takes part keeps its memory open until the decision.
// Or it was, and its sets are gone, too.
func gone(err error) bool {
	return slices.ContainsFunc([]error{mpi.ErrProcFailed, mpi.ErrRevoked, mpi.ErrClosed, mpi.ErrAborted, mpi.ErrSetGone}, func(class error) bool { return errors.Is(err, class) })
}

// undone is why a newcomer is none: that its change was rolled back, if that is why err
// has come, as sets are gone then, and sources go on, or leave. Otherwise it declines the
// change. byUser: the user function has failed.
func (m *Module) undone(c *sessions.Change, err error, byUser bool) error {
	echo := isEcho(err)
	switch {
	case errors.As(err, new(*LostError)), errors.Is(err, errUncoded): // others have said it
		return errors.Join(c.Decline(err), err)
	case errors.Is(err, mpi.ErrRolledBack):
		return err
	case byUser && !echo, errors.Is(err, mpi.ErrMismatch), !errors.As(err, new(*mpi.Error)):
		_ = c.Decline(err) // this process ends
		return err
	}
	if committed, asked := m.decline(c, err, echo); asked == nil && !committed {
		_, err = c.Commit(m.ctx)
	}
	return err
}

// close ends the communicator of both, and what was exposed for the change.
func (a *adoption) close() {
	for _, x := range a.open {
		_ = x.Close() // once
	}
	a.open = nil
	if a.borrower != nil {
		a.borrower.close()
		a.borrower = nil
	}
	for _, l := range a.loans {
		l.close(a.m)
	}
	a.loans = nil
	if a.both != nil {
		_ = a.both.Free() // nobody uses it any more
		a.both = nil
	}
}
