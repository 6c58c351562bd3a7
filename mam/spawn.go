// SPDX-License-Identifier: Apache-2.0

package mam

import "gompi/sessions"

// fillRequest sets in a request how its newcomers start.
func (c *Config) fillRequest(r *sessions.Request) {
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

// waitingRanks are the ranks that wait in Checkpoint until newcomers are ready.
type waitingRanks uint8

const (
	noneWait waitingRanks = iota
	firstWaits
	allWait
)

// waitingRanks returns the ranks that wait. As published, sources wait unless the strategies have
// SpawnBackground; with SpawnSingle only the one that asks waits.
func (c *Config) waitingRanks() waitingRanks {
	switch {
	case c.Spawn == Auto || c.Spawn&SpawnBackground != 0:
		return noneWait
	case c.Spawn&SpawnSingle != 0:
		return firstWaits
	}
	return allWait
}

// awaitNewcomers is the wait for newcomers that are not started in the background. It begins when
// the change that rank 0 has asked for is granted. It ends when that change is seen coming or
// does not happen, or when another change is seen coming, because that must be over first. A
// request that waits for processors or for another change is not waited for: it may need these
// ranks.
func (m *Module) awaitNewcomers() error {
	who := m.config.waitingRanks()
	if who == noneWait || m.current != nil {
		return nil
	}
	name := ""
	if x := m.request; m.comm.Rank() == 0 && x.pending() && !x.hasWaited {
		select {
		case <-x.granted:
			x.hasWaited, name = true, x.newcomersOf
		default:
		}
	}
	if _, err := m.w.Set(); err != nil { // the watch goes on to the set of a commit just now
		return err
	}
	if who == firstWaits {
		if name != "" {
			m.waitComing(m.request.over)
		}
		return nil
	}
	if err := m.ensureComm(); err != nil {
		return err
	}
	name, err := bcastName(m.moduleComm.WithContext(m.ctx), name, 0)
	switch {
	case err != nil && processGone(err):
		return nil // some rank has died: the next change leaves it out
	case err != nil || name == "":
		return err
	}
	_, err = m.waitSeen(name)
	return err
}

// grouped reports whether the newcomers of each host are a world of their own.
func (c *Config) grouped() bool { return c.Spawn&(SpawnMultiple|SpawnParallel) != 0 }

// noteMultiHost notes on rank 0 whether one of these worlds has processes on several hosts, if
// the configuration depends on it. Rank 0 does not know of worlds that joined before it.
func (m *Module) noteMultiHost(worlds ...string) error {
	if m.multiHost || !m.config.grouped() || m.comm.Rank() != 0 {
		return nil
	}
	for _, name := range worlds {
		i, err := m.s.Info(name)
		if err != nil {
			return err
		}
		m.multiHost = m.multiHost || i.Hosts > 1
	}
	return nil
}
