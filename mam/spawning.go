// SPDX-License-Identifier: Apache-2.0

package mam

import "gompi/sessions"

// order says in a request how its newcomers start.
func (c *Config) order(r *sessions.Request) {
	switch {
	case c.Spawn&SpawnParallel != 0:
		r.Start = sessions.StartParallel
	case c.Spawn&SpawnMultiple != 0:
		r.Start = sessions.StartMultiple
	case c.Spawn&SpawnSequential != 0:
		r.Start = sessions.StartSequential
	}
	if c.Placement == Spread {
		r.Place = sessions.PlaceSpread
	}
}

// waiters are who waits in Checkpoint until newcomers are ready.
type waiters uint8

const (
	nobodyWaits waiters = iota
	firstWaits
	allWait
)

// waiters: what is said of Spawn without SpawnBackground is as published: sources wait,
// with SpawnSingle the one that asks.
func (c *Config) waiters() waiters {
	switch {
	case c.Spawn == Auto || c.Spawn&SpawnBackground != 0:
		return nobodyWaits
	case c.Spawn&SpawnSingle != 0:
		return firstWaits
	}
	return allWait
}

// awaitNewcomers is the wait of a configuration that does not start them in the
// background: as soon as the change that rank 0 has asked for is granted, until it is seen
// coming, or another is, which would have to be over before it, or it does not happen. What
// waits for processors or for another change is not waited for: that may need these ranks.
func (m *Module) awaitNewcomers() error {
	who := m.config.waiters()
	if who == nobodyWaits || m.adopting != nil {
		return nil
	}
	name := ""
	if x := m.wish; m.comm.Rank() == 0 && x.pending() && !x.waited {
		select {
		case <-x.granted:
			x.waited, name = true, x.awaits
		default:
		}
	}
	if _, err := m.w.Set(); err != nil { // the watch goes on to it, if that is of a commit just now
		return err
	}
	if who == firstWaits {
		if name != "" {
			m.arrival(m.wish.over)
		}
		return nil
	}
	if err := m.alone(); err != nil {
		return err
	}
	name, err := tell(m.own.WithContext(m.ctx), name, 0)
	switch {
	case err != nil && gone(err):
		return nil // some rank has died: the next change leaves it out
	case err != nil || name == "":
		return err
	}
	_, err = m.seen(name)
	return err
}

// grouped reports whether each host's newcomers are a world of their own.
func (c *Config) grouped() bool { return c.Spawn&(SpawnMultiple|SpawnParallel) != 0 }

// span notes on rank 0 whether one of these worlds has processes on several hosts, where it
// makes a difference. Of worlds that have come before rank 0 it does not know.
func (m *Module) span(worlds ...string) error {
	if m.spans || !m.config.grouped() || m.comm.Rank() != 0 {
		return nil
	}
	for _, name := range worlds {
		i, err := m.s.Info(name)
		if err != nil {
			return err
		}
		m.spans = m.spans || i.Hosts > 1
	}
	return nil
}
