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
	// touchBytes are touched before a rest.
	touchBytes = 2 << 20
	// worthBytes that the collector could give back are worth a collection, as new pages
	// take longer.
	worthBytes = 32 << 20
)

// block is memory that the module has given to the program, which may have it still.
type block struct {
	at    weak.Pointer[uint64]
	bytes int64
}

// fresh is new memory for elements without pointers. What the module gave for an earlier
// change, and the program has no more, is used again: its pages are there.
func (m *Module) fresh(bytes int64) ([]byte, block) {
	if bytes >= largeBytes {
		m.collect()
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

// leave notes memory that the module has replaced.
func (m *Module) leave(b block) {
	if b.bytes == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = append(m.left, b)
}

// collect has what the program does not need any more be free.
func (m *Module) collect() {
	m.mu.Lock()
	list := m.left
	m.left = nil
	m.mu.Unlock()
	var bytes int64
	for _, b := range list {
		if b.at.Value() != nil {
			bytes += b.bytes
		}
	}
	if bytes >= worthBytes {
		runtime.GC()
	}
}

// touch gives targets the memory for what they are to have, with its pages.
func (a *adoption) touch(x *move, p *pace) error {
	start := time.Now()
	switch {
	case x.fresh != nil || a.new < 0:
		return nil
	case x.shared != nil:
		err := a.occupy(x, p)
		a.times.Touch += a.times.spent(Touching, start)
		return err
	case !x.Replicated:
		x.fresh, x.block = a.m.fresh(x.next.Count(a.new) * x.Bytes)
	case a.old < 0:
		x.fresh, x.block = a.m.fresh(x.Rule.N * x.Bytes)
	default:
		return nil
	}
	// A span has no rest in it.
	defer func() { a.times.Touch += a.times.spent(Touching, start) }()
	if p == nil {
		return steps(int64(len(x.fresh)), func(lo, hi int64) error {
			step := x.fresh[lo:hi]
			a.told(len(step))
			return a.inHands(hi-lo, nil, func(lo, hi int64) error {
				touchPages(step[lo:hi])
				return nil
			})
		})
	}
	for rest := x.fresh; len(rest) > 0; {
		n := min(len(rest), touchBytes)
		_ = p.work(func() error { // it cannot fail
			touchPages(rest[:n])
			return nil
		})
		a.told(n)
		if rest = rest[n:]; len(rest) > 0 && p.rests() {
			a.times.Touch += a.times.spent(Touching, start)
			err := p.rest()
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

// touchSoon is touch of all that this process is to have, before the change is handed out,
// but for what costs the iterations as much then as at the commit: with strategy Blocking,
// where no processor is free. There all processors of the host are free for it, and nobody
// waits for who has been held up by it.
func (a *adoption) touchSoon(p *pace) error {
	for _, x := range a.moves {
		if a.config.Strategy == Blocking && p.rests() && x.shared == nil {
			continue
		}
		if err := a.touch(x, p); err != nil {
			return err
		}
	}
	return nil
}
