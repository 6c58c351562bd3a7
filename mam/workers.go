// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"runtime"

	"gompi/internal/base/settings"
	"gompi/internal/host/parallel"
)

const (
	// workerBytes is how much a thread takes at a time of work for several: a huge page.
	workerBytes = 2 << 20
	// minParallelBytes are worth several threads, which take some 50 us to begin.
	minParallelBytes = 4 << 20
)

// workers returns the threads that work at this process's part of the data. In the background,
// with a rate limit, it is one: the processors belong to ranks that compute. At the commit
// processes with nothing to receive only wait. Their processors are shared by those that
// receive, one thread for each processor of the host that is idle then.
func (rc *reconfiguration) workers(limit *rateLimit) parallel.Workers {
	process := rc.m.comm.Process().Core().Process()
	if n, err := settings.MamThreads.Lookup(process.Setting, 0); limit != nil || err != nil {
		return parallel.Workers{}
	} else if n > 0 {
		return parallel.Workers{Threads: int(n)}
	}
	busy := process.Neighbors()
	if rc.m.inputs.Hosts == 1 {
		// Others of the job do not take part in this change, and compute.
		others := busy - rc.sources() - rc.newcomers()
		busy = len(rc.to) + max(0, others)
	}
	return parallel.Workers{Threads: min(process.Usable()/max(busy, 1), runtime.GOMAXPROCS(0)), Migrate: process.Roams()}
}

// copyLocal copies what this process has itself.
func (rc *reconfiguration) copyLocal(to, from []byte, limit *rateLimit) {
	_ = steps(int64(len(to)), func(lo, hi int64) error { // it cannot fail
		to, from := to[lo:hi], from[lo:hi]
		if limit == nil {
			rc.report(len(to))
		}
		return rc.parallel(hi-lo, limit, func(lo, hi int64) error {
			copy(to[lo:hi], from[lo:hi])
			return nil
		})
	})
}

// parallel has all workers do ranges of so many bytes of work. If that is not much, or nobody
// else is free, it does all at once.
func (rc *reconfiguration) parallel(bytes int64, limit *rateLimit, do func(lo, hi int64) error) error {
	c := parallel.Workers{}
	if bytes >= minParallelBytes {
		c = rc.workers(limit)
	}
	if c.Threads < 2 {
		return do(0, bytes)
	}
	return c.Each(int((bytes+workerBytes-1)/workerBytes), func(i int) error {
		lo := int64(i) * workerBytes
		return do(lo, min(lo+workerBytes, bytes))
	})
}
