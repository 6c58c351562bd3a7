// SPDX-License-Identifier: Apache-2.0

package testlab

import (
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const (
	// usualStart is how long a small process takes from its start to its end, and
	// usualCall a system call, on the machines for which rounds are chosen.
	usualStart = time.Millisecond
	usualCall  = 100 * time.Nanosecond
	// usual is how much slower than these a machine may be and still do all rounds:
	// other tests run beside the measurement.
	usual = 2
	// most is by how much rounds are reduced at most: a test that compares the last
	// rounds with the first needs some.
	most = 4
)

// slowness is how much slower than usual this machine starts processes or makes system
// calls, whichever is worse: at least 1. The best of several measurements counts.
var slowness = sync.OnceValue(func() float64 {
	const calls = 1000
	start, call := time.Hour, time.Hour
	for range 7 {
		t := time.Now()
		for range calls {
			syscall.Getppid()
		}
		call = min(call, time.Since(t)/calls)
		if t = time.Now(); exec.Command("true").Run() == nil {
			start = min(start, time.Since(t))
		}
	}
	if start == time.Hour { // there is no such program
		start = usualStart
	}
	return slower(start, call)
})

// slower is how much slower a machine is on which these take so long.
func slower(start, call time.Duration) float64 {
	ratio := max(float64(start)/float64(usualStart), float64(call)/float64(usualCall))
	return min(max(1, ratio/usual), most)
}

// Rounds is how many rounds a test makes, or cases it takes: long where the long forms
// are run; else short, and fewer on a machine that starts processes or makes system calls
// slowly, but at least one.
func Rounds(short, long int) int {
	if Long() {
		return long
	}
	return fewer(short, slowness())
}

// Every is Rounds for a test that takes one of so many cases: 1 where the long forms are
// run, else n, and more on a slow machine.
func Every(n int) int {
	if Long() {
		return 1
	}
	return int(float64(n) * slowness())
}

// Takes reports whether a test runs case i in the form that is asked for: every nth case
// on any machine, or all in the long form.
func Takes(i, n int) bool { return Long() || i%n == 0 }

func fewer(n int, by float64) int { return max(1, int(float64(n)/by)) }
