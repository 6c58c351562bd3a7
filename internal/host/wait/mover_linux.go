// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Mover moves threads from processor to processor. It is memory for one caller
// at a time.
type Mover struct{ allowed, target unix.CPUSet }

// Even has the kernel move the calling thread from processor here to the one
// with the least load of those it may run on, and reports whether it has. It
// does so only if that makes the load more even, and leaves the thread free to
// be moved on. load counts threads by processor.
func (m *Mover) Balance(here int, load []uint16) bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.SchedGetaffinity(0, &m.allowed) != nil || m.allowed.Count() < 2 {
		return false
	}
	to := emptier(here, load, &m.allowed)
	if to < 0 {
		return false
	}
	m.target.Zero()
	m.target.Set(to)
	if unix.SchedSetaffinity(0, &m.target) != nil {
		return false
	}
	_ = unix.SchedSetaffinity(0, &m.allowed) // it was allowed a moment ago
	return true
}

// emptier is the allowed processor with the least load, if one more makes it no
// fuller than here is then; else -1.
func emptier(here int, load []uint16, allowed *unix.CPUSet) int {
	best := -1
	for cpu, n := range load {
		if n+2 <= load[here] && (best < 0 || n < load[best]) && allowed.IsSet(cpu) {
			best = cpu
		}
	}
	return best
}
