// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"runtime"

	"gompi/sessions"
)

// CheckpointLate is Checkpoint of a process to which other things happen between the moment
// in which a change is delivered to it and its part in it; while is called there.
func (m *Module) CheckpointLate(while func(*sessions.Change)) (State, error) {
	if err := m.publishAndRequest(); err != nil {
		return m.State(), err
	}
	c, err := m.w.Check(m.iteration + m.waited)
	if c == nil || err != nil {
		m.iteration++
		return m.State(), err
	}
	while(c)
	m.iteration++
	if m.current, err = m.deliver(c); err != nil {
		return m.fail(c, err)
	}
	return m.advance(Check)
}

// TakenBack waits until what has moved early of a change that was rolled back is gone.
func (m *Module) TakenBack(c *sessions.Change) {
	for {
		m.mu.Lock()
		rc := m.prepared
		m.mu.Unlock()
		if rc == nil || rc.change != c {
			return
		}
		runtime.Gosched()
	}
}

// WasComing reports whether this process has seen a change.
func (m *Module) WasComing() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.comingSince.IsZero()
}

// WholeArray is all memory of an array.
func WholeArray(m *Module, name string) []byte { return m.named(name).shared.Bytes() }

// SetStep sets the bytes of a step at the commit until the end of the test.
func SetStep(t interface{ Cleanup(func()) }, bytes int64) {
	was := stepBytes
	stepBytes = bytes
	t.Cleanup(func() { stepBytes = was })
}

// Told is how many bytes this process has counted for a change that was delivered to it.
func (m *Module) Told() int64 {
	for rank, l := range m.w.Lines {
		if rank == m.comm.Rank() {
			return l.Bytes
		}
	}
	return 0
}
