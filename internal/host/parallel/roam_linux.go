// SPDX-License-Identifier: Apache-2.0

package parallel

import (
	"math"
	"runtime"

	"golang.org/x/sys/unix"
)

// away is where helpers go for which there is no room at home.
type away struct {
	room int // threads for which there is
	to   unix.CPUSet
}

// elsewhere looks for processors on which the parent process may run and the caller may
// not. Where there are none, or what is known does not tell, there is room for all.
func elsewhere() (a away) {
	var own unix.CPUSet
	a.room = math.MaxInt
	if unix.SchedGetaffinity(0, &own) != nil || unix.SchedGetaffinity(unix.Getppid(), &a.to) != nil {
		return a
	}
	for i := range a.to {
		a.to[i] &^= own[i]
	}
	if a.to.Count() > 0 {
		a.room = own.Count()
	}
	return a
}

// move has the calling thread, which is locked to its goroutine, go there. Who may not stays.
// back is to be called before the goroutine ends: the first thread of a process would not
// end with it. No other one is moved back, as it may have to be elsewhere by then.
func (a *away) move() (back func()) {
	var own unix.CPUSet
	first := unix.Gettid() == unix.Getpid()
	if first && unix.SchedGetaffinity(0, &own) != nil || unix.SchedSetaffinity(0, &a.to) != nil || !first {
		return func() {}
	}
	return func() {
		_ = unix.SchedSetaffinity(0, &own) // it was there a moment ago
		runtime.UnlockOSThread()
	}
}
