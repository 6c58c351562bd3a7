// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"runtime"

	"gompi/sessions"
)

// CheckpointLate is Checkpoint of a process to which other things happen between the moment
// in which it is handed a change and its part in it; while is called there.
func (m *Module) CheckpointLate(while func(*sessions.Change)) (State, error) {
	if err := m.admit(); err != nil {
		return m.State(), err
	}
	c, err := m.w.Check(m.iteration + m.ahead)
	if c == nil || err != nil {
		m.iteration++
		return m.State(), err
	}
	while(c)
	m.iteration++
	if m.adopting, err = m.handed(c); err != nil {
		return m.failed(c, err)
	}
	return m.goOn(Check)
}

// TakenBack waits until what has moved early of a change that was rolled back is gone.
func (m *Module) TakenBack(c *sessions.Change) {
	for {
		m.mu.Lock()
		a := m.ready
		m.mu.Unlock()
		if a == nil || a.c != c {
			return
		}
		runtime.Gosched()
	}
}

// WasComing reports whether this process has seen a change.
func (m *Module) WasComing() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.since.IsZero()
}

// WholeArray is all memory of an array.
func WholeArray(m *Module, name string) []byte { return m.named(name).shared.Bytes() }

// SetStep makes a step of the moves at a commit so many bytes, until the test has ended.
func SetStep(t interface{ Cleanup(func()) }, bytes int64) {
	was := stepBytes
	stepBytes = bytes
	t.Cleanup(func() { stepBytes = was })
}

// Told is how many bytes this process has counted for a change that it was handed.
func (m *Module) Told() int64 {
	for rank, l := range m.w.Lines {
		if rank == m.comm.Rank() {
			return l.Bytes
		}
	}
	return 0
}
