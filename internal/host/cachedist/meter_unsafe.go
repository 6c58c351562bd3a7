// SPDX-License-Identifier: Apache-2.0

// Package distance finds out how far other processors are, by the time that a line of memory
// takes. docs/design/037-shm-policies.md.
package cachedist

// unsafe: a word of memory that others use at will is touched by an atomic.

import (
	"sync/atomic"
	"time"
	"unsafe"
)

const (
	// probeEvery is after how many writes of some length the distance is looked at again.
	probeEvery = 64
	// farTime is how much longer it takes to get a line that a far processor has read than
	// one that this one has, at least; from a near one it takes a third.
	// docs/results/shm.md has the figures.
	farTime = 80 * time.Nanosecond
)

// Meter is how far the processors are on which those run that read what this one writes:
// processors share a cache, or do not, and those of a virtual machine move. The zero value
// takes them for near.
type Meter struct {
	far   bool
	count uint32
	seen  [2]uint32
	idle  uint64
	last  [3]bool // what the last probes said: one of them may have been interrupted
}

// Far reports whether one of the readers does not share a cache with this processor, as far
// as the last probes tell.
func (m *Meter) Far() bool { return m.far }

// Near reports whether all of the last looks found all readers near.
func (m *Meter) Near() bool { return m.last == [3]bool{} }

// Seen is in how many looks the readers were near, and far.
func (m *Meter) Seen() (near, far int) { return int(m.seen[0]), int(m.seen[1]) }

// Last reports whether the last look took as long as if a reader were far.
func (m *Meter) Last() bool { return m.last[0] }

// Probe measures now and then how long it takes to get a line of to, which the readers have
// read last and which this processor is about to write. It reports whether it has.
func (m *Meter) Probe(to []byte) bool {
	if m.count++; m.count <= uint32(len(m.last)) || m.count%probeEvery == 0 {
		at := -uintptr(unsafe.Pointer(unsafe.SliceData(to))) % 8
		if uintptr(len(to)) >= at+8 {
			m.measure((*uint64)(unsafe.Pointer(&to[at])))
			return true
		}
	}
	return false
}

func (m *Meter) measure(word *uint64) {
	atomic.AddUint64(&m.idle, 0) // what was stored before has its lines now
	begin := time.Now()
	atomic.AddUint64(word, 0)
	took := time.Since(begin)
	begin = time.Now()
	atomic.AddUint64(word, 0)
	took -= time.Since(begin)
	copy(m.last[1:], m.last[:])
	if m.last[0] = took > farTime; m.last[0] {
		m.seen[1]++
	} else {
		m.seen[0]++
	}
	n := 0
	for _, far := range m.last {
		if far {
			n++
		}
	}
	m.far = n > len(m.last)/2
}
