// SPDX-License-Identifier: Apache-2.0

package dirty

import "sync/atomic"

// Marks records the writes to a memory that the program reports. For each chunk it keeps the
// version of the last reported write. It is safe for all goroutines. No write is missed if
// it is reported after it was done: a reader that reads before the write finds the mark
// later, and a reader that reads after it has the new data.
type Marks struct {
	bytes   int64
	version atomic.Uint32
	chunks  []atomic.Uint32
}

// NewMarks returns the marks of a memory of so many bytes, without any write.
func NewMarks(bytes int64) *Marks {
	m := &Marks{bytes: bytes, chunks: make([]atomic.Uint32, (bytes+ChunkBytes-1)/ChunkBytes)}
	m.version.Store(1)
	return m
}

// Bytes returns the length of the memory.
func (m *Marks) Bytes() int64 { return m.bytes }

// Mark records a write to the bytes [from, to) of the memory. It ignores bytes outside of
// the memory.
func (m *Marks) Mark(from, to int64) {
	from, to = max(from, 0), min(to, m.bytes)
	if from >= to {
		return
	}
	v := m.version.Load()
	for c := from / ChunkBytes; c <= (to-1)/ChunkBytes; c++ {
		for was := m.chunks[c].Load(); was < v && !m.chunks[c].CompareAndSwap(was, v); {
			was = m.chunks[c].Load()
		}
	}
}

// Arm starts a version.
func (m *Marks) Arm() Watch { return &markedVersion{m, m.version.Add(1)} }

// markedVersion is a version of a memory, from its start on.
type markedVersion struct {
	m     *Marks
	since uint32
}

// Written implements Watch.
func (w *markedVersion) Written() (*Set, error) {
	s := newSet(w.m.bytes, 0)
	for c := range w.m.chunks {
		if w.m.chunks[c].Load() >= w.since {
			s.Add(int64(c)*ChunkBytes, int64(c+1)*ChunkBytes)
		}
	}
	return s, nil
}

// Disarm implements Watch.
func (w *markedVersion) Disarm() error { return nil }

// Watch observes a memory from the moment it was armed.
type Watch interface {
	// Written returns the chunks that were written since then, and perhaps more. The
	// memory stays armed.
	Written() (*Set, error)
	// Disarm ends the observation.
	Disarm() error
}
