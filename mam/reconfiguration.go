// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"fmt"
	"time"

	"gompi/mpi"
	"gompi/rma"
	"gompi/sessions"
)

// reconfiguration is one change of size with its data, as this process sees it. plan makes
// it, before any other process is needed; close ends it. One goroutine at a time uses it:
// the module's, until the change is delivered, then the program's.
type reconfiguration struct {
	m      *Module
	change *sessions.Change
	since  time.Time // when this process learned of the change

	// The plan. It is the same on all members, but for the ranks old and new.
	members
	config     Config   // with method and strategy chosen
	autoReason string   // why Auto has chosen them; "": nothing was left to Auto
	schedule   schedule // of the strategy
	mover      mover    // of the method
	inPlace    *inPlace // for arrays in host memory
	transfers  []*transfer
	edition    int   // of the registrations
	lost       error // data of dead ranks: nothing moves, and all members learn of it

	// The merged communicator, nil until it is made: see User.Comm. As long as the change is
	// not delivered, calls in it end with background, and work has the rate limit.
	merged     *mpi.Comm
	background context.Context
	limit      *rateLimit

	// What other processes read of this one, until the decision. publication is nil on a
	// newcomer. input is the store of the set that changes.
	publication *publication
	input       *sessions.Store
	exposed     []*rma.Exposed
	snapshots   map[*array]*snapshot

	// The user phase.
	hasUser    bool
	userFailed bool

	times Times
}

// plan makes the reconfiguration of a change from ns ranks, of which this process has the
// rank old; -1: it is a newcomer. Local.
func (m *Module) plan(c *sessions.Change, ns, old int, since time.Time, arrays []*array) (*reconfiguration, error) {
	rc := &reconfiguration{m: m, change: c, since: since, members: members{old: old}}
	m.mu.Lock()
	rc.config, rc.edition = m.config, m.edition
	x := m.inputs
	m.mu.Unlock()
	if err := rc.findMembers(ns); err != nil {
		return nil, err
	}
	rc.lost = lostData(arrays, rc.dead())
	if err := rc.planTransfers(arrays); err != nil {
		return nil, err
	}
	rc.planMover(&x)
	return rc, nil
}

// planTransfers finds the layout of each array after the change.
func (rc *reconfiguration) planTransfers(arrays []*array) (err error) {
	for i, x := range arrays {
		y := &transfer{array: x, tag: i}
		if !x.Replicated {
			if y.nextSplit, y.nextRule, err = x.Rule.Next(x.split, rc.stay, rc.times.ND); err != nil {
				return fmt.Errorf("mam: %q: %w", x.Name, err)
			}
		}
		rc.transfers = append(rc.transfers, y)
	}
	return nil
}

// planMover chooses method and strategy, once for the reconfiguration.
func (rc *reconfiguration) planMover(x *inputs) {
	named := rc.config.Method
	if carrier := methods[named].carrier; carrier != Auto {
		rc.config.Method = carrier
	}
	rc.autoReason = rc.chooseAuto(x)
	rc.config, _ = repaired(rc.config, rc.times.NS, rc.times.ND, false) // by the method that was chosen, too
	rc.schedule = schedules[rc.config.Strategy]
	rc.mover = methods[rc.config.Method].mover(rc)
	rc.inPlace = &inPlace{rc: rc}
	rc.times.Method, rc.times.Strategy = rc.config.Method, rc.config.Strategy
	if named != Auto {
		rc.times.Method = named
	}
}

// deliver begins with a change that was delivered to a source.
func (m *Module) deliver(c *sessions.Change) (*reconfiguration, error) {
	m.mu.Lock()
	since := m.comingSince
	m.mu.Unlock()
	rc := m.takePrepared(c)
	if rc == nil {
		var err error
		if rc, err = m.plan(c, m.comm.Size(), m.comm.Rank(), since, m.arrays); err != nil {
			return nil, err
		}
		if rc.lost == nil && rc.schedule.background {
			return nil, errLateRollback
		}
	}
	err := rc.checkLengths()
	if err == nil {
		err = rc.atDelivery()
	}
	if err != nil {
		rc.close()
		return nil, err
	}
	if rc.autoReason != "" {
		m.printSettings(nil, "auto: "+rc.autoReason)
	}
	return rc, nil
}

// checkLengths checks that the variables of this source are as long as their layouts say.
func (rc *reconfiguration) checkLengths() error {
	for _, x := range rc.transfers {
		if err := x.checkLength(rc.old); err != nil {
			return rc.m.refuse("Checkpoint", mpi.ErrCount, err)
		}
	}
	return nil
}

// takePrepared hands over the reconfiguration that was prepared for a change; nil: there is
// none, or another caller has taken it.
func (m *Module) takePrepared(c *sessions.Change) *reconfiguration {
	m.mu.Lock()
	defer m.mu.Unlock()
	rc := m.prepared
	if rc == nil || rc.change != c {
		return nil
	}
	m.prepared = nil
	return rc
}

// report counts bytes that have moved. While some process reports, deadlines of the change
// begin anew.
func (rc *reconfiguration) report(bytes int) {
	if rc.old < 0 {
		rc.change.AddBytes(bytes)
	} else {
		rc.m.w.AddBytes(bytes)
	}
}

// dirtyNames names the data of which more than half was read twice.
func (rc *reconfiguration) dirtyNames() (names []string) {
	for _, x := range rc.transfers {
		if x.deltaBytes > x.earlyBytes/2 {
			names = append(names, x.Name)
		}
	}
	return names
}

// close frees the merged communicator, and withdraws what was exposed for the change.
func (rc *reconfiguration) close() {
	for _, x := range rc.exposed {
		_ = x.Close() // once
	}
	rc.exposed = nil
	rc.mover.close()
	for _, s := range rc.snapshots {
		s.release(rc.m)
	}
	rc.snapshots = nil
	if rc.merged != nil {
		_ = rc.merged.Free() // nobody uses it any more
		rc.merged = nil
	}
}
