// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"errors"
	"slices"
	"time"

	"gompi/mpi"
	"gompi/sessions"
)

// prepareAll is the goroutine that sees changes before members are handed them, and moves
// what may move meanwhile.
func (m *Module) prepareAll(w *sessions.Watcher) {
	for {
		c, err := w.Coming(m.life)
		if err != nil {
			return // the watch is over, or the job
		}
		m.mu.Lock()
		m.coming, m.since = c, time.Now()
		close(m.news)
		m.news = make(chan struct{})
		gate := m.gate
		m.mu.Unlock()
		select {
		case <-gate:
		case <-m.life.Done():
			return
		}
		if err := m.prepare(c); err != nil {
			if gone(err) || errors.Is(err, mpi.ErrRolledBack) || errors.Is(err, sessions.ErrSetGone) {
				_, _ = c.Decided(m.life)
			}
			// That members have different data is to be told on all, though one has ended it.
			differ := errors.Is(err, mpi.ErrMismatch) && !errors.Is(err, errStale)
			if (differ || !c.Over()) && m.life.Err() == nil {
				m.mu.Lock()
				m.trouble = err
				alarm := m.alarm
				m.mu.Unlock()
				if alarm != nil {
					alarm()
				}
				_ = c.Decline(err) // of one that is over it says nothing
			}
			continue
		}
		err = w.Release(c)
		if err == nil { // who is handed it takes what is ready
			_, err = c.Decided(m.life)
		}
		if a := m.takeReady(c); a != nil {
			a.close()
		}
		if err != nil {
			return // it has no connection any more, or ends
		}
	}
}

// prepare gives this process the memory for what it is to have, and moves constant data, as
// far as that is to be done before the change is handed out; then variable data that can be
// lent.
func (m *Module) prepare(c *sessions.Change) (err error) {
	m.mu.Lock()
	arrays, since, now := slices.Clone(m.arrays), m.since, m.shown
	m.mu.Unlock()
	a, err := m.adoptionOf(c, now.ranks, now.rank, since, arrays)
	if err != nil || a.lost != nil {
		return err
	}
	defer func() {
		if err != nil {
			a.close()
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.ready = a
	}()
	ctx, cancel := m.whileComing(c)
	defer cancel()
	if a.config.early() && a.config.Method != Pull {
		for i, x := range a.moves {
			x.have = now.memory[i]
		}
		return a.moveEarly(ctx)
	}
	if err := a.touchSoon(a.paced(ctx)); err != nil {
		return err
	}
	if a.config.early() && a.new >= 0 {
		start := time.Now()
		if err := a.pullEarly(ctx, now.store, now); err != nil {
			return err
		}
		a.times.Async = a.times.spent(Background, start)
	}
	if a.lends() {
		return a.lendAndBorrow(ctx)
	}
	return nil
}
