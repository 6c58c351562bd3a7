// SPDX-License-Identifier: Apache-2.0

// Package cputime measures how long threads have had a processor. Unlike the wall
// clock, this time does not grow while a thread waits for a processor, so it measures
// work on a shared host.
package cputime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Thread returns how long the calling thread has had a processor. To compare two
// calls, the goroutine must hold its thread by runtime.LockOSThread.
func Thread() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}
