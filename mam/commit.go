// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"errors"
	"strings"
	"time"

	"gompi/mpi"
	"gompi/sessions"
)

// finish moves what is left, and tells newcomers the iteration.
func (rc *reconfiguration) finish() error {
	if err := rc.transferAll(Variable); err != nil {
		return err
	}
	if !rc.hasUser {
		return nil
	}
	// Each call of the user function but the first was a Checkpoint of the sources, unless one
	// of them has waited.
	at, err := mpi.BcastOne(rc.merged, rc.m.iteration, rc.first())
	rc.m.iteration = at
	return err
}

// commit votes for the change, and switches this process to the new ranks and the new data.
// If the change is rolled back, everything is as if it had not been. What other processes
// read of this one, or wait for, is given up after the decision only.
func (m *Module) commit() (State, error) {
	rc := m.current
	start := time.Now()
	comm, err := rc.change.Commit(m.ctx)
	if err != nil {
		return m.fail(rc.change, err)
	}
	rc.times.Commit = time.Since(start)
	err = rc.inPlace.settle()
	rc.close()
	m.current = nil
	m.switchData(rc)
	m.withdrawConstant()
	err = errors.Join(err, m.switchComm(comm))
	m.set, m.timed, m.wanted = rc.change.Result, m.request, 0
	err = errors.Join(err, m.noteMultiHost(rc.change.Joining...))
	m.releaseSets(rc.change)
	m.endChange()
	m.times = rc.finalTimes()
	return Completed, err
}

// switchData makes the new memory the program's variables, and the new layouts those of the
// data.
func (m *Module) switchData(rc *reconfiguration) {
	for _, x := range rc.transfers {
		if x.target != nil {
			if !x.One {
				m.retire(x.givenBlock)
				x.givenBlock = x.block
			}
			if x.store != nil {
				x.store(x.target)
			} else {
				x.arrived = x.target
			}
		}
		if !x.Replicated {
			x.split, x.Rule = x.nextSplit, x.nextRule
		}
	}
}

// switchComm makes a communicator that of the program, and frees those of before.
func (m *Module) switchComm(comm *mpi.Comm) (err error) {
	if m.ownsComm {
		err = m.comm.Free()
	}
	if m.moduleComm != nil {
		err = errors.Join(err, m.moduleComm.Free())
		m.moduleComm = nil
	}
	m.comm, m.ownsComm = comm, true
	return err
}

// endChange lets no change be prepared before the registrations are published anew.
func (m *Module) endChange() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closeGate()
	m.coming = nil
}

// finalTimes completes the times of a change that was committed.
func (rc *reconfiguration) finalTimes() Times {
	t := rc.times
	for _, x := range rc.transfers {
		t.Bytes, t.Again = t.Bytes+x.received, t.Again+x.deltaBytes
	}
	t.Hot = strings.Join(rc.dirtyNames(), ", ")
	t.Total = time.Since(rc.since)
	return t
}

// releaseSets releases the sets of a change that are not needed any more.
func (m *Module) releaseSets(c *sessions.Change) {
	for _, name := range append([]string{c.Input, c.Leaving}, c.Joining...) {
		if name != "" {
			_ = m.s.Release(name)
		}
	}
}
