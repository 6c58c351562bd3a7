// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"runtime"
	"time"
	"weak"

	"gompi/internal/host/huge"
)

const (
	pageBytes = 4096
	// largeBytes of new memory may hold a huge page wherever it lies.
	largeBytes = 4 << 20
	// touchStepBytes are touched before a pause.
	touchStepBytes = 2 << 20
	// minReclaimBytes that the collector could give back are worth a collection, because new
	// pages take longer.
	minReclaimBytes = 32 << 20
)

// block is memory that the module has given to the program, which may still have it.
type block struct {
	at    weak.Pointer[uint64]
	bytes int64
}

// newMemory returns memory for elements without pointers. Memory that the module gave for an
// earlier change, and that the program no longer has, is collected first: its pages are used
// again.
func (m *Module) newMemory(bytes int64) ([]byte, block) {
	if bytes >= largeBytes {
		m.reclaim()
	}
	if bytes == 0 {
		return []byte{}, block{}
	}
	words := make([]uint64, (bytes+7)/8)
	b := wordsAsBytes(words, bytes)
	if bytes >= largeBytes {
		huge.Advise(b)
	}
	return b, block{at: weak.Make(&words[0]), bytes: bytes}
}

// retire notes memory that the module has replaced.
func (m *Module) retire(b block) {
	if b.bytes == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.retired = append(m.retired, b)
}

// reclaim collects garbage if enough memory was retired.
func (m *Module) reclaim() {
	m.mu.Lock()
	list := m.retired
	m.retired = nil
	m.mu.Unlock()
	var bytes int64
	for _, b := range list {
		if b.at.Value() != nil {
			bytes += b.bytes
		}
	}
	if bytes >= minReclaimBytes {
		runtime.GC()
	}
}

// allocate gives a target the memory for what it is to have of an array, with its pages. It
// does nothing for memory that is there.
func (rc *reconfiguration) allocate(x *transfer, limit *rateLimit) error {
	start := time.Now()
	switch {
	case x.target != nil || rc.new < 0:
		return nil
	case x.shared != nil:
		err := rc.fillBlock(x, limit)
		rc.times.Touch += rc.times.spent(Touching, start)
		return err
	case !x.Replicated:
		x.target, x.block = rc.m.newMemory(x.nextSplit.Count(rc.new) * x.Bytes)
	case rc.old < 0:
		x.target, x.block = rc.m.newMemory(x.Rule.N * x.Bytes)
	default:
		return nil
	}
	// A span has no pause in it.
	defer func() { rc.times.Touch += rc.times.spent(Touching, start) }()
	if limit == nil {
		return steps(int64(len(x.target)), func(lo, hi int64) error {
			step := x.target[lo:hi]
			rc.report(len(step))
			return rc.parallel(hi-lo, nil, func(lo, hi int64) error {
				touchPages(step[lo:hi])
				return nil
			})
		})
	}
	for rest := x.target; len(rest) > 0; {
		n := min(len(rest), touchStepBytes)
		_ = limit.work(func() error { // it cannot fail
			touchPages(rest[:n])
			return nil
		})
		rc.report(n)
		if rest = rest[n:]; len(rest) > 0 && limit.pauses() {
			rc.times.Touch += rc.times.spent(Touching, start)
			err := limit.pause()
			if start = time.Now(); err != nil {
				return err
			}
		}
	}
	return nil
}

// touchPages writes to each page of new memory.
func touchPages(b []byte) {
	for i := 0; i < len(b); i += pageBytes {
		b[i] = 0
	}
}

// allocateEarly allocates all that this process is to have before the change is delivered.
// With strategy Blocking, where no processor is free, it leaves that to the commit: it would
// cost the iterations as much here. At the commit all processors of the host are free for it,
// and no rank waits for one that was held up by it.
func (rc *reconfiguration) allocateEarly(limit *rateLimit) error {
	for _, x := range rc.transfers {
		if !rc.schedule.background && limit.pauses() && x.shared == nil {
			continue
		}
		if err := rc.allocate(x, limit); err != nil {
			return err
		}
	}
	return nil
}
