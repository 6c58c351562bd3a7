// SPDX-License-Identifier: Apache-2.0

// Package wait implements how a process waits for messages. Gate is the lock of the
// engine. Policy and Backoff are the budgets for spinning and yielding. Sleeper is the
// one place where a process sleeps. Publish stores a word for a process that may be
// about to sleep.
package wait

import (
	"runtime"
	"time"
)

// Policy says how long a waiting goroutine spins and yields before the process sleeps.
// Budgets count turns of the poll loop, not time.
type Policy struct {
	// Spin is the number of turns without yielding the processor, each of about 30 ns.
	Spin int
	// Yield is the number of turns that yield the processor.
	Yield int
	// OS says to yield to other processes by sched_yield. It is false for ranks that are
	// goroutines: these yield to their siblings in the same process.
	OS bool
	// Spare says that there are processors that no rank needs. Then another goroutine
	// should at once take over what a goroutine leaves undone when it computes.
	Spare bool
	// Ranks is the number of ranks that are OS processes and share the processors, or 0 if
	// it is unknown. PerCPU is the number of them per processor, rounded up.
	Ranks, PerCPU int
}

// Oversubscribed reports whether ranks take turns on a processor. It is also true if
// that is unknown, as for ranks that are goroutines.
func (p *Policy) Oversubscribed() bool { return p.PerCPU != 1 }

// HeavilyOversubscribed reports whether so many ranks share each processor that a process
// should sleep at once when it waits for something slow. Yields would then be time lost
// to the other ranks.
func (p *Policy) HeavilyOversubscribed() bool { return p.PerCPU > heavyAbove }

// Other goroutines get a chance to run in every goschedEvery-th OS yield if the process
// has one P. With more Ps they get it once per goschedPause: then there is mostly an idle
// P, and Gosched wakes the thread of that P, which then continues the yielding goroutine.
// That costs 10 us, and the kernel puts the other thread on any processor.
const (
	goschedEvery = 16
	goschedPause = 4 * time.Millisecond
	// A processor with more than heavyAbove ranks uses heavyPause instead. It is shorter
	// than the 10 ms after which Go preempts a goroutine: after a preemption Go's monitor
	// wakes every 20 us for a millisecond, in each of the processes.
	heavyAbove = 8
	heavyPause = 8 * time.Millisecond
)

// ForOS returns the policy of a rank that is an OS process. local is the number of ranks
// on the host, cpus the number of usable CPUs.
func ForOS(local, cpus int) Policy {
	if local <= cpus {
		return Policy{
			Spin:   2000,
			Yield:  2000,
			OS:     true,
			Spare:  local < cpus,
			Ranks:  local,
			PerCPU: 1,
		}
	}
	return Policy{
		Spin:   2,
		Yield:  1000,
		OS:     true,
		Ranks:  local,
		PerCPU: (local + cpus - 1) / cpus,
	}
}

// ForGoroutine returns the policy of a rank that is a goroutine.
func ForGoroutine() Policy { return Policy{Spin: 0, Yield: 64} }

// A yield that takes busyYield has let another process compute for a time slice of the
// kernel (3 to 4 ms). It uses up the whole budget: a sleeping process does not wait for
// further time slices and disturbs no other process. Each other rank of the processor may
// take rankYield before it yields in turn. So with many ranks on a processor slow yields
// are normal and not a reason to sleep: each time that a process wakes, Go's monitor runs
// every 20 us for a millisecond.
const (
	busyYield = 500 * time.Microsecond
	rankYield = 20 * time.Microsecond
)

var clockBase = time.Now()

// Turn yields the processor once. turn counts the calls of one wait. Turn returns the cost
// of the yield, in units of the Yield budget.
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

// yield lets other processes run and returns the cost in units of the budget.
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
