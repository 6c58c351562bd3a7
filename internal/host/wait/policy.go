// SPDX-License-Identifier: Apache-2.0

// Package wait holds how a process waits: the engine's lock, the budgets of
// spinning and yielding, and the one place where a process sleeps.
package wait

import (
	"runtime"
	"time"
)

// Policy says how long a waiting goroutine spins and yields before the
// process sleeps. Budgets count turns of the poll loop, not time.
type Policy struct {
	// Spin is the number of turns without giving up the processor, each of
	// about 30 ns.
	Spin int
	// Yield is the number of turns that each give the processor away.
	Yield int
	// OS: yield to other processes with sched_yield. False for ranks that are
	// goroutines: they yield to their siblings in the same process.
	OS bool
	// Spare: there are processors that no rank needs, so what a goroutine
	// leaves undone when it goes computing is best taken up at once.
	Spare bool
	// Ranks that are OS processes and share the processors; 0: unknown. PerCPU is
	// how many of them there are for each processor, rounded up.
	Ranks, PerCPU int
}

// Oversubscribed reports whether ranks take turns on a processor, as far as is known:
// those that are goroutines may.
func (p *Policy) Oversubscribed() bool { return p.PerCPU != 1 }

// Packed reports whether so many ranks share each processor that those who wait
// for something slow should sleep at once: what they yield is lost to the others.
func (p *Policy) HeavilyOversubscribed() bool { return p.PerCPU > heavyAbove }

// Other goroutines get a chance to run in every goschedEvery-th OS yield if the
// process has one P, else every goschedPause: then there is mostly a P without
// work, whose thread Gosched wakes, and which goes on with the yielding
// goroutine itself. That costs 10 us, and the kernel puts the other thread on
// whatever processor it likes.
const (
	goschedEvery = 16
	goschedPause = 4 * time.Millisecond
	// Where a processor has more than packedAbove ranks they do so every
	// packedPause. It is shorter than the 10 ms after which Go preempts a
	// goroutine: its monitor wakes every 20 us for a millisecond then, in each
	// of the processes.
	heavyAbove = 8
	heavyPause = 8 * time.Millisecond
)

// ForOS is the policy of a rank that is an OS process: local ranks on cpus
// usable CPUs.
func ForOS(local, cpus int) Policy {
	if local <= cpus {
		return Policy{Spin: 2000, Yield: 2000, OS: true, Spare: local < cpus, Ranks: local, PerCPU: 1}
	}
	return Policy{Spin: 2, Yield: 1000, OS: true, Ranks: local, PerCPU: (local + cpus - 1) / cpus}
}

// ForGoroutine is the policy of a rank that is a goroutine.
func ForGoroutine() Policy { return Policy{Spin: 0, Yield: 64} }

// busyYield: a yield that takes this long has let another process compute for
// a time slice of the kernel (3-4 ms). It uses up the budget: a sleeper need
// not wait for the next ones, and is in nobody's way. Each other rank of the
// processor may take rankYield before it yields, too: among many ranks sleep is
// no way out, as each time a process wakes Go's monitor looks every 20 us for a
// millisecond what it does.
const (
	busyYield = 500 * time.Microsecond
	rankYield = 20 * time.Microsecond
)

var clockBase = time.Now()

// Turn gives the processor away once; turn counts the calls of one wait. It
// returns how much of the Yield budget that cost.
func (p Policy) Turn(turn int) int {
	if !p.OS {
		runtime.Gosched()
		return 1
	}
	if turn%goschedEvery == goschedEvery-1 && runtime.GOMAXPROCS(0) == 1 {
		runtime.Gosched()
	}
	return p.yield()
}

// Relax lets other goroutines and other threads run once.
func (p Policy) Relax() {
	runtime.Gosched()
	if p.OS {
		p.yield()
	}
}

// yield lets other processes run and returns what that costs of the budget.
func (p Policy) yield() int {
	before := time.Since(clockBase)
	osYield()
	after := time.Since(clockBase)
	if !p.HeavilyOversubscribed() {
		if before/goschedPause != after/goschedPause {
			runtime.Gosched()
		}
	} else if before/heavyPause != after/heavyPause {
		runtime.Gosched()
	}
	if after-before < busyYield+time.Duration(p.PerCPU)*rankYield {
		return 1
	}
	return p.Yield
}
