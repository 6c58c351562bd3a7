// SPDX-License-Identifier: Apache-2.0

package dirty

import "sync/atomic"

// Marks is what a program says that it has written in a memory: of each chunk the last
// version in which it has. Safe for all goroutines. A write that is marked after it was
// done is not missed: who reads before it finds the mark later, who reads after it has
// read what was written.
type Marks struct {
	bytes   int64
	version atomic.Uint32
	chunks  []atomic.Uint32
}

// NewMarks is that of a memory in which nothing was written since.
func NewMarks(bytes int64) *Marks {
	m := &Marks{bytes: bytes, chunks: make([]atomic.Uint32, (bytes+ChunkBytes-1)/ChunkBytes)}
	m.version.Store(1)
	return m
}

// Bytes is the length of the memory.
func (m *Marks) Bytes() int64 { return m.bytes }

// Mark says that bytes [from, to) of the memory were written; what is outside of it is
// left out.
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

// Arm begins a version.
func (m *Marks) Arm() Watch { return &markedVersion{m, m.version.Add(1)} }

// marked is a version that was begun.
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

// Watch is a memory from when it was armed.
type Watch interface {
	// Written is what was written since then, and perhaps more. What is armed stays so.
	Written() (*Set, error)
	// Disarm ends it.
	Disarm() error
}
