// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"runtime"

	"gompi/internal/base/settings"
	"gompi/internal/host/parallel"
)

const (
	// handBytes is how much a thread takes at a time of what several do: a huge page.
	handBytes = 2 << 20
	// sharedBytes are worth several threads, which take some 50 us to begin.
	sharedBytes = 4 << 20
)

// crew is who works at this process's part of the data: one thread, and at the commit, where
// those that have nothing to receive only wait, one for each processor of the host that is
// idle then, shared by those that receive. In the background, of which p is the pace, it is
// one: the processors belong to those who compute.
func (a *adoption) crew(p *pace) parallel.Workers {
	process := a.m.comm.Process().Core().Process()
	if n, err := settings.MamThreads.Lookup(process.Setting, 0); p != nil || err != nil {
		return parallel.Workers{}
	} else if n > 0 {
		return parallel.Workers{Threads: int(n)}
	}
	busy := process.Neighbors()
	if a.m.inputs.Hosts == 1 {
		// Others of the job are not in this change, and compute.
		others := busy - a.sources() - a.newcomers()
		busy = len(a.to) + max(0, others)
	}
	return parallel.Workers{Threads: min(process.Usable()/max(busy, 1), runtime.GOMAXPROCS(0)), Migrate: process.Roams()}
}

func (a *adoption) sources() int   { return len(a.from) - len(a.dead()) }
func (a *adoption) newcomers() int { return len(a.to) - len(a.stay) }

// copy copies what this process has itself.
func (a *adoption) copy(to, from []byte, p *pace) {
	_ = steps(int64(len(to)), func(lo, hi int64) error { // it cannot fail
		to, from := to[lo:hi], from[lo:hi]
		if p == nil {
			a.told(len(to))
		}
		return a.inHands(hi-lo, p, func(lo, hi int64) error {
			copy(to[lo:hi], from[lo:hi])
			return nil
		})
	})
}

// inHands has all hands do work of so many bytes in parts, or does it as one if it is not
// much or nobody else is free.
func (a *adoption) inHands(bytes int64, p *pace, do func(lo, hi int64) error) error {
	c := parallel.Workers{}
	if bytes >= sharedBytes {
		c = a.crew(p)
	}
	if c.Threads < 2 {
		return do(0, bytes)
	}
	return c.Each(int((bytes+handBytes-1)/handBytes), func(i int) error {
		lo := int64(i) * handBytes
		return do(lo, min(lo+handBytes, bytes))
	})
}
