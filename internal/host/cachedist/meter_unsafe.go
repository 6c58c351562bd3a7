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
	probeInterval = 64
	// farTime is how much longer it takes to get a line that a far processor has read than
	// one that this one has, at least; from a near one it takes a third.
	// docs/results/shm.md has the figures.
	farTime = 80 * time.Nanosecond
)

// Meter is how far the processors are on which those run that read what this one writes:
// processors share a cache, or do not, and those of a virtual machine move. The zero value
// takes them for near.
type Meter struct {
	far     bool
	count   uint32
	counts  [2]uint32
	scratch uint64
	recent  [3]bool // what the last probes said: one of them may have been interrupted
}

// Far reports whether one of the readers does not share a cache with this processor, as far
// as the last probes tell.
func (m *Meter) Far() bool { return m.far }

// Near reports whether all of the last looks found all readers near.
func (m *Meter) Near() bool { return m.recent == [3]bool{} }

// Seen is in how many looks the readers were near, and far.
func (m *Meter) Counts() (near, far int) { return int(m.counts[0]), int(m.counts[1]) }

// Last reports whether the last look took as long as if a reader were far.
func (m *Meter) LastFar() bool { return m.recent[0] }

// Probe measures now and then how long it takes to get a line of to, which the readers have
// read last and which this processor is about to write. It reports whether it has.
func (m *Meter) Probe(to []byte) bool {
	if m.count++; m.count <= uint32(len(m.recent)) || m.count%probeInterval == 0 {
		at := -uintptr(unsafe.Pointer(unsafe.SliceData(to))) % 8
		if uintptr(len(to)) >= at+8 {
			m.measure((*uint64)(unsafe.Pointer(&to[at])))
			return true
		}
	}
	return false
}

func (m *Meter) measure(word *uint64) {
	atomic.AddUint64(&m.scratch, 0) // what was stored before has its lines now
	begin := time.Now()
	atomic.AddUint64(word, 0)
	took := time.Since(begin)
	begin = time.Now()
	atomic.AddUint64(word, 0)
	took -= time.Since(begin)
	copy(m.recent[1:], m.recent[:])
	if m.recent[0] = took > farTime; m.recent[0] {
		m.counts[1]++
	} else {
		m.counts[0]++
	}
	n := 0
	for _, far := range m.recent {
		if far {
			n++
		}
	}
	m.far = n > len(m.recent)/2
}
