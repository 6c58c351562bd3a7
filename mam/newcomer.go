// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"bytes"
	"fmt"
	"time"

	"gompi/sessions"
)

// join is the part of a newcomer, until it is one of the ranks.
func (m *Module) join(c *sessions.Change) error {
	a, err := m.arrive(c)
	if err != nil {
		return m.undone(c, err, false)
	}
	m.adopting = a
	if a.lost == nil {
		err = a.moveAhead()
	}
	if err == nil {
		err = a.begin()
	}
	if err != nil {
		_, err = m.failed(c, err)
		return err
	}
	state, err := m.goOn(Wait)
	if err != nil {
		return err
	}
	if state != Completed {
		return fmt.Errorf("gompi: BUG: a newcomer is %v", state)
	}
	m.w, err = sessions.Watch(m.ctx, c.Result, options)
	return err
}

// moveAhead is what moves before the sources are handed the change, behind Ready.
func (a *adoption) moveAhead() error {
	switch {
	case a.config.Method != Pull && a.config.early():
		return a.moveEarly(a.m.life)
	case a.lends():
		return a.lendAndBorrow(a.m.life)
	}
	return nil
}

// arrive prepares a newcomer for the change, without any source. What has failed since
// something was changed meanwhile is done again.
func (m *Module) arrive(c *sessions.Change) (*adoption, error) {
	store, err := m.s.Store(c.Input)
	if err != nil {
		return nil, err
	}
	var last []byte
	for {
		text, head, err := registryIn(m.ctx, store)
		if err != nil {
			return nil, err
		}
		a, err := m.prepared(c, store, text)
		if err == nil {
			return a, c.Ready()
		}
		if bytes.Equal(head, last) {
			return nil, err
		}
		last = head
	}
}

// prepared is arrive by a registry.
func (m *Module) prepared(c *sessions.Change, store *sessions.Store, text []byte) (*adoption, error) {
	r, err := readRegistry(text)
	if err != nil {
		return nil, err
	}
	if err := m.freeAll(); err != nil { // of what was read before
		return nil, err
	}
	m.config, m.settings, m.inputs = r.Config, r.Settings, r.Inputs
	m.edition, m.arrays = r.Edition, nil
	for _, e := range r.Data {
		x := &array{entry: e}
		if !e.Replicated {
			if x.split, err = e.Rule.Over(r.Ranks); err != nil {
				return nil, fmt.Errorf("mam: %q: %w", e.Name, err)
			}
		}
		if e.Shared != "" {
			if err := m.mapArray(x); err != nil {
				return nil, fmt.Errorf("mam: %q: %w", e.Name, err)
			}
		}
		m.arrays = append(m.arrays, x)
	}
	a, err := m.adoptionOf(c, r.Ranks, -1, time.Now(), m.arrays)
	if err != nil {
		return nil, err
	}
	if a.lost != nil {
		return a, nil
	}
	if err := a.touchSoon(a.paced(m.life)); err != nil {
		return nil, err
	}
	if a.config.early() && a.config.Method == Pull {
		start := time.Now()
		if err := a.pullEarly(m.life, store, nil); err != nil {
			return nil, err
		}
		a.times.Async = a.times.spent(Background, start)
	}
	return a, nil
}
