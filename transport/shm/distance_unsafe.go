// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"sync/atomic"
	"time"
	"unsafe"
)

const (
	// A payload of pastLeast and more goes past the cache to a far processor.
	pastLeast = 1 << 10
	// probeEvery is after how many such payloads the distance is looked at again.
	probeEvery = 64
	// farTime is how much longer it takes to get a line from a far processor than from
	// nowhere, at least; from a near one it takes a third. docs/design/031-near-and-far.md
	// has the figures.
	farTime = 60 * time.Nanosecond
)

// distance is how far the processor is on which the peer runs: processors share a cache, or
// do not, and those of a virtual machine move.
type distance struct {
	far   bool
	count uint32
	last  [3]bool // what the last probes said: one of them may have been interrupted
}

// probe measures now and then how long it takes to get a line that the peer has read last,
// and that is about to be written.
func (d *distance) probe(line []byte) {
	if d.count++; d.count > uint32(len(d.last)) && d.count%probeEvery != 0 {
		return
	}
	word := (*uint64)(unsafe.Pointer(&line[0])) // payloads begin on a line
	begin := time.Now()
	atomic.AddUint64(word, 0)
	took := time.Since(begin)
	begin = time.Now()
	atomic.AddUint64(word, 0)
	took -= time.Since(begin)
	d.last[d.count%uint32(len(d.last))] = took > farTime
	n := 0
	for _, far := range d.last {
		if far {
			n++
		}
	}
	d.far = n > len(d.last)/2
}
