// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"

	"gompi/mpi"
	"gompi/sessions"
)

// awaitChange is the rest of a Checkpoint with Wait that has checked in with a number and got no
// change. All members agree whether there is a change to wait for. A member that waits cannot
// come to the iteration of the delivery. So it checks in with the next number, once that is
// known; from then on the numbers of all are ahead by one more.
func (m *Module) awaitChange(number int) (*sessions.Change, error) {
	name, err := m.agreedComing()
	if t := m.takePrepareErr(); t != nil && err == nil {
		err = t
	}
	if name == "" || err != nil {
		return nil, err
	}
	m.waited++
	c, err := m.waitSeen(name)
	if c == nil || err != nil {
		return nil, err
	}
	if shown, err := m.waitAnnounced(c); !shown || err != nil {
		return nil, err
	}
	if delivered, err := m.w.Check(number); delivered != nil || err != nil {
		return delivered, err
	}
	delivered, err := m.w.Check(number + 1)
	if delivered == nil && err == nil && !c.Over() {
		err = m.refuse("Checkpoint", mpi.ErrMismatch, errMixedCompletion)
	}
	return delivered, err
}

// agreedComing returns the Result of a change that some member has seen coming; "": there is
// none. Rank 0 first waits for a change that it has asked for. Collective.
func (m *Module) agreedComing() (name string, err error) {
	if err := m.ensureComm(); err != nil {
		return "", err
	}
	if m.comm.Rank() == 0 && m.request.pending() {
		m.waitComing(m.request.over)
	}
	own := m.moduleComm.WithContext(m.ctx)
	first := own.Size()
	c := m.comingNow()
	if c != nil {
		first, name = own.Rank(), c.Result
	}
	if first, err = mpi.AllreduceOne(own, first, mpi.Min); err != nil || first == own.Size() {
		return "", err
	}
	return bcastName(own, name, first)
}

// bcastName gives all ranks the name that one of them has.
func bcastName(comm *mpi.Comm, name string, from int) (string, error) {
	n, err := mpi.BcastOne(comm, len(name), from)
	if err != nil || n <= 0 || n > maxName {
		return "", err
	}
	text := make([]byte, n)
	copy(text, name)
	err = mpi.Bcast(comm, text, from)
	return string(text), err
}

// waitComing waits until a change is coming here, over is closed, or the module ends.
func (m *Module) waitComing(over <-chan struct{}) {
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

// waitSeen waits until this member sees a change, by its Result, that another member has seen;
// nil: the change was rolled back before.
func (m *Module) waitSeen(result string) (*sessions.Change, error) {
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
	m.waitComing(over)
	if c := m.comingNow(); c != nil && c.Result == result {
		return c, nil
	}
	if m.life.Err() != nil {
		return nil, context.Cause(m.life)
	}
	return nil, nil
}

// waitAnnounced waits until a change is announced or over, or cannot be prepared here.
func (m *Module) waitAnnounced(c *sessions.Change) (bool, error) {
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	m.mu.Lock()
	m.onPrepareErr = cancel
	trouble := m.prepareErr != nil
	m.mu.Unlock()
	if trouble {
		cancel()
	}
	select {
	case m.checkpointWaits <- struct{}{}:
	default:
	}
	shown, err := m.w.Shown(ctx, c)
	m.mu.Lock()
	m.onPrepareErr = nil
	preparing := m.preparing
	m.mu.Unlock()
	if !shown && err == nil && preparing != nil {
		// The change is over, perhaps declined by a member that found an error which this
		// one is still about to find: all report it in the same call.
		select {
		case <-preparing:
		case <-m.life.Done():
		}
	}
	if t := m.takePrepareErr(); t != nil {
		return false, t
	}
	return shown, err
}
