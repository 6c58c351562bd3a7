// SPDX-License-Identifier: Apache-2.0

package parallel

import (
	"math"
	"runtime"

	"golang.org/x/sys/unix"
)

// otherCPUs are processors for the helpers that find no room on those of this process.
type otherCPUs struct {
	room int // number of threads that this process's own processors have room for
	set  unix.CPUSet
}

// findOtherCPUs looks for processors that the parent process may run on and the caller
// may not. If there are none, or the kernel does not say, room is unlimited.
func findOtherCPUs() (a otherCPUs) {
	var own unix.CPUSet
	a.room = math.MaxInt
	if unix.SchedGetaffinity(0, &own) != nil || unix.SchedGetaffinity(unix.Getppid(), &a.set) != nil {
		return a
	}
	for i := range a.set {
		a.set[i] &^= own[i]
	}
	if a.set.Count() > 0 {
		a.room = own.Count()
	}
	return a
}

// migrate moves the calling thread, which is locked to its goroutine, to the other
// processors. If the kernel forbids that, the thread stays. The caller must call undo
// before its goroutine ends, because the first thread of a process does not end with
// its goroutine. Other threads end with their goroutine, so they need no undo.
func (a *otherCPUs) migrate() (undo func()) {
	var own unix.CPUSet
	first := unix.Gettid() == unix.Getpid()
	if first && unix.SchedGetaffinity(0, &own) != nil || unix.SchedSetaffinity(0, &a.set) != nil || !first {
		return func() {}
	}
	return func() {
		_ = unix.SchedSetaffinity(0, &own) // the kernel allowed it a moment ago
		runtime.UnlockOSThread()
	}
}
