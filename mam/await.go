// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"

	"gompi/mpi"
	"gompi/sessions"
)

// await is the rest of a Checkpoint with Wait that has checked in with a number and was
// handed nothing. Whether there is something to wait for all members find together. Who
// waits cannot come to the iteration in which the change would be handed out, and so
// checks in with the next number when that is known; from then on all are ahead by one
// more.
func (m *Module) await(number int) (*sessions.Change, error) {
	name, err := m.awaited()
	if t := m.takeTrouble(); t != nil && err == nil {
		err = t
	}
	if name == "" || err != nil {
		return nil, err
	}
	m.ahead++
	c, err := m.seen(name)
	if c == nil || err != nil {
		return nil, err
	}
	if shown, err := m.shows(c); !shown || err != nil {
		return nil, err
	}
	if handed, err := m.w.Check(number); handed != nil || err != nil {
		return handed, err
	}
	handed, err := m.w.Check(number + 1)
	if handed == nil && err == nil && !c.Over() {
		err = m.refuse("Checkpoint", mpi.ErrMismatch, errMixed)
	}
	return handed, err
}

// awaited is the name of the result of the change that some member has seen coming; "":
// there is none. Rank 0 waits until one comes that it has asked for.
func (m *Module) awaited() (name string, err error) {
	if err := m.alone(); err != nil {
		return "", err
	}
	if m.comm.Rank() == 0 && m.wish.pending() {
		m.arrival(m.wish.over)
	}
	own := m.own.WithContext(m.ctx)
	first := own.Size()
	c := m.comingNow()
	if c != nil {
		first, name = own.Rank(), c.Result
	}
	if first, err = mpi.AllreduceOne(own, first, mpi.Min); err != nil || first == own.Size() {
		return "", err
	}
	return tell(own, name, first)
}

// tell gives all ranks the name that one of them has.
func tell(comm *mpi.Comm, name string, from int) (string, error) {
	n, err := mpi.BcastOne(comm, len(name), from)
	if err != nil || n <= 0 || n > mostName {
		return "", err
	}
	text := make([]byte, n)
	copy(text, name)
	err = mpi.Bcast(comm, text, from)
	return string(text), err
}

// arrival waits until a change is coming here, or until over is closed, or the module
// ends.
func (m *Module) arrival(over <-chan struct{}) {
	for m.comingNow() == nil {
		m.mu.Lock()
		news := m.news
		m.mu.Unlock()
		if m.comingNow() != nil {
			return
		}
		select {
		case <-news:
		case <-over:
			return
		case <-m.life.Done():
			return
		}
	}
}

// seen is the change with a result that another member has seen, as soon as this one has;
// nil: it was rolled back before.
func (m *Module) seen(result string) (*sessions.Change, error) {
	if c := m.comingNow(); c != nil && c.Result == result {
		return c, nil
	}
	ctx, cancel := context.WithCancel(m.life)
	defer cancel()
	over := make(chan struct{})
	m.done.Go(func() {
		defer close(over)
		_, _ = m.s.Reached(ctx, result, sessions.Committed) // without this member it is rolled back
	})
	m.arrival(over)
	if c := m.comingNow(); c != nil && c.Result == result {
		return c, nil
	}
	if m.life.Err() != nil {
		return nil, context.Cause(m.life)
	}
	return nil, nil
}

// shows waits until a change is shown, or over, or cannot be prepared here.
func (m *Module) shows(c *sessions.Change) (bool, error) {
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	m.mu.Lock()
	m.alarm = cancel
	trouble := m.trouble != nil
	m.mu.Unlock()
	if trouble {
		cancel()
	}
	select {
	case m.waits <- struct{}{}:
	default:
	}
	shown, err := m.w.Shown(ctx, c)
	m.mu.Lock()
	m.alarm = nil
	m.mu.Unlock()
	if t := m.takeTrouble(); t != nil {
		return false, t
	}
	return shown, err
}
