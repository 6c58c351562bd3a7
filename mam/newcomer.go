// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"bytes"
	"fmt"
	"time"

	"gompi/sessions"
)

// joinChange is Init on a newcomer, until it is one of the ranks.
func (m *Module) joinChange(c *sessions.Change) error {
	rc, err := m.planNewcomer(c)
	if err != nil {
		return m.failNewcomer(c, err, false)
	}
	m.current = rc
	if rc.lost == nil {
		err = rc.whileComputing(m.life)
	}
	if err == nil {
		err = rc.atDelivery()
	}
	if err != nil {
		_, err = m.fail(c, err)
		return err
	}
	state, err := m.advance(Wait)
	if err != nil {
		return err
	}
	if state != Completed {
		return fmt.Errorf("gompi: BUG: a newcomer is %v", state)
	}
	m.w, err = sessions.Watch(m.ctx, c.Result, options)
	return err
}

// planNewcomer prepares a newcomer for the change, without any source, and says Ready. After
// an error it begins anew if the sources have published another registry meanwhile.
func (m *Module) planNewcomer(c *sessions.Change) (*reconfiguration, error) {
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
		rc, err := m.planByRegistry(c, store, text)
		if err == nil {
			return rc, c.Ready()
		}
		if bytes.Equal(head, last) {
			return nil, err
		}
		last = head
	}
}

// planByRegistry is planNewcomer with one registry.
func (m *Module) planByRegistry(c *sessions.Change, store *sessions.Store, text []byte) (*reconfiguration, error) {
	r, err := readRegistry(text)
	if err != nil {
		return nil, err
	}
	if err := m.freeAll(); err != nil { // arrays of the registry before
		return nil, err
	}
	m.config, m.settings, m.inputs = r.Config, r.Settings, r.Inputs
	m.edition = r.Edition
	if m.arrays, err = m.arraysOf(r); err != nil {
		return nil, err
	}
	rc, err := m.plan(c, r.Ranks, -1, time.Now(), m.arrays)
	if err != nil || rc.lost != nil {
		return rc, err
	}
	rc.input = store
	if err := rc.beforeReady(m.life); err != nil {
		return nil, err
	}
	return rc, nil
}

// arraysOf returns the data of a registry, and maps what lies in host memory.
func (m *Module) arraysOf(r *registry) (list []*array, err error) {
	for _, e := range r.Data {
		x := &array{entry: e}
		if !e.Replicated {
			if x.split, err = e.Rule.Over(r.Ranks); err != nil {
				return list, fmt.Errorf("mam: %q: %w", e.Name, err)
			}
		}
		if e.Shared != "" {
			if err := m.mapArray(x); err != nil {
				return list, fmt.Errorf("mam: %q: %w", e.Name, err)
			}
		}
		list = append(list, x)
	}
	return list, nil
}
