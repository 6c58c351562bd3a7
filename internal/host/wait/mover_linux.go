// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Mover moves threads between processors. It is working memory for one caller at a time.
type Mover struct{ allowed, target unix.CPUSet }

// Balance makes the kernel move the calling thread from processor here to the allowed
// processor with the least load, and reports whether it has moved. It moves the thread
// only if that evens out the load. The kernel may move the thread again afterwards. load
// counts threads by processor.
func (m *Mover) Balance(here int, load []uint16) bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.SchedGetaffinity(0, &m.allowed) != nil || m.allowed.Count() < 2 {
		return false
	}
	to := leastLoaded(here, load, &m.allowed)
	if to < 0 {
		return false
	}
	m.target.Zero()
	m.target.Set(to)
	if unix.SchedSetaffinity(0, &m.target) != nil {
		return false
	}
	_ = unix.SchedSetaffinity(0, &m.allowed) // the kernel allowed it a moment ago
	return true
}

// leastLoaded returns the allowed processor with the least load. It returns -1 if one
// more thread would make that processor fuller than here would then be.
func leastLoaded(here int, load []uint16, allowed *unix.CPUSet) int {
	best := -1
	for cpu, n := range load {
		if n+2 <= load[here] && (best < 0 || n < load[best]) && allowed.IsSet(cpu) {
			best = cpu
		}
	}
	return best
}
