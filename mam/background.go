// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"errors"
	"slices"
	"time"

	"gompi/mpi"
	"gompi/sessions"
)

// prepareLoop is the goroutine of a member. It sees changes before they are delivered, moves
// what may move meanwhile, and then says Release.
func (m *Module) prepareLoop(w *sessions.Watcher) {
	for {
		c, err := w.Coming(m.life)
		if err != nil {
			return // the watch is over, or the job
		}
		if !m.noteComing(c) {
			return
		}
		err = m.prepareChange(c)
		if err != nil {
			m.prepareFailed(c, err)
		}
		close(m.preparing)
		if err != nil {
			continue
		}
		err = w.Release(c)
		if err == nil { // the member that gets the change takes what is prepared
			_, err = c.Decided(m.life)
		}
		if rc := m.takePrepared(c); rc != nil {
			rc.close()
		}
		if err != nil {
			return // there is no connection any more, or the process ends
		}
	}
}

// noteComing notes a change that is coming, and waits until the registrations are published.
// It reports false if the module ends first.
func (m *Module) noteComing(c *sessions.Change) bool {
	m.mu.Lock()
	m.coming, m.comingSince, m.preparing = c, time.Now(), make(chan struct{})
	close(m.news)
	m.news = make(chan struct{})
	gate := m.publishedGate
	m.mu.Unlock()
	select {
	case <-gate:
		return true
	case <-m.life.Done():
		return false
	}
}

// prepareFailed leaves an error for the next Checkpoint, unless it only follows from a
// roll-back, and declines the change.
func (m *Module) prepareFailed(c *sessions.Change, err error) {
	if processGone(err) || errors.Is(err, mpi.ErrRolledBack) || errors.Is(err, sessions.ErrSetGone) {
		_, _ = c.Decided(m.life)
	}
	// All report that members have different data, though one of them has ended the change.
	differ := errors.Is(err, mpi.ErrMismatch) && !errors.Is(err, errStaleRegistry)
	if (!differ && c.Over()) || m.life.Err() != nil {
		return
	}
	m.mu.Lock()
	m.prepareErr = err
	wake := m.onPrepareErr
	m.mu.Unlock()
	if wake != nil {
		wake()
	}
	_ = c.Decline(err) // it does nothing if the change is over
}

// prepareChange does what this process does before the change is delivered: it allocates its
// new memory and moves data as the schedule says.
func (m *Module) prepareChange(c *sessions.Change) (err error) {
	m.mu.Lock()
	arrays, since, now := slices.Clone(m.arrays), m.comingSince, m.publication
	m.mu.Unlock()
	rc, err := m.plan(c, now.ranks, now.rank, since, arrays)
	if err != nil || rc.lost != nil {
		return err
	}
	rc.publication, rc.input = now, now.store
	defer func() {
		if err != nil {
			rc.close()
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.prepared = rc
	}()
	ctx, cancel := m.untilRollback(c)
	defer cancel()
	if err := rc.allocateEarly(rc.newRateLimit(ctx)); err != nil {
		return err
	}
	return rc.whileComputing(ctx)
}
