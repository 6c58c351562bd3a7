// SPDX-License-Identifier: Apache-2.0

// Package cputime tells how long threads have had a processor.
package cputime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Thread is how long the calling thread has had a processor. Between two calls that are
// compared a goroutine holds its thread by runtime.LockOSThread.
func Thread() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}
