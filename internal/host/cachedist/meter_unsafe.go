// SPDX-License-Identifier: Apache-2.0

// Package cachedist finds out whether other processors share a cache with this one. A
// Meter times the transfer of a cache line that the other processor has read. See
// docs/design/037-shm-policies.md.
package cachedist

// unsafe: an atomic operation touches a word of memory that other processors also use.

import (
	"sync/atomic"
	"time"
	"unsafe"
)

const (
	// probeInterval is the number of calls of Probe from one measurement to the next.
	probeInterval = 64
	// farTime is the extra time for a line that a far processor has read, compared with
	// a line that this processor has. A near processor takes a third of it. The figures
	// are in docs/results/shm.md.
	farTime = 80 * time.Nanosecond
)

// Meter says whether the processes that read what this one writes run on processors
// that share a cache with this one. The answer may change: a hypervisor moves virtual
// processors. The zero value assumes that all readers are near.
type Meter struct {
	far     bool
	count   uint32    // calls of Probe
	counts  [2]uint32 // measurements: near, far
	scratch uint64
	recent  [3]bool // results of the last measurements; one may have been interrupted
}

// Far reports whether most of the recent measurements found a reader that does not share
// a cache with this processor.
func (m *Meter) Far() bool { return m.far }

// Near reports whether all recent measurements found all readers near.
func (m *Meter) Near() bool { return m.recent == [3]bool{} }

// Counts returns how many measurements found the readers near, and how many far.
func (m *Meter) Counts() (near, far int) { return int(m.counts[0]), int(m.counts[1]) }

// LastFar reports whether the last measurement found a reader far.
func (m *Meter) LastFar() bool { return m.recent[0] }

// Probe takes a measurement from time to time, on a line of to. The readers must have
// read it last, and this processor must be about to write it. Probe reports whether it
// has measured.
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

// measure times the transfer of the line that holds word.
func (m *Meter) measure(word *uint64) {
	atomic.AddUint64(&m.scratch, 0) // waits for all stores so far
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
