// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"slices"
	"time"

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
		m.coming, m.since, m.ready = c, time.Now(), nil
		close(m.news)
		m.news = make(chan struct{})
		gate := m.gate
		m.mu.Unlock()
		select {
		case <-gate:
		case <-m.life.Done():
			return
		}
		if err := m.prepare(m.life, c); err != nil {
			if gone(err) {
				_, _ = c.Decided(m.life)
			}
			if !c.Over() && m.life.Err() == nil { // it will be, at its deadline, as this member holds it back
				m.mu.Lock()
				m.trouble = err
				m.mu.Unlock()
			}
			continue
		}
		if err := w.Release(c); err != nil {
			return // it has no connection any more
		}
	}
}

// prepare moves constant data that this process is to have, without the others.
func (m *Module) prepare(ctx context.Context, c *sessions.Change) error {
	m.mu.Lock()
	arrays, since, now := slices.Clone(m.arrays), m.since, m.shown
	m.mu.Unlock()
	if now == nil || c.Role == sessions.Leaving {
		return nil
	}
	a, err := m.adoptionOf(c, now.ranks, now.rank, since, arrays)
	if err != nil || a.lost != nil {
		return err
	}
	start := time.Now()
	if err := a.pullEarly(ctx, now.store, now); err != nil {
		return err
	}
	a.times.Async = a.times.spent(Background, start)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.coming == c {
		m.ready = a
	}
	return nil
}
