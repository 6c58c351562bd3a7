// SPDX-License-Identifier: Apache-2.0

// Package retry paces the retries of an operation that failed because this process
// had no file descriptors or no memory. No other process is to blame for that, and
// both come back when this process closes something. A Retry belongs to one
// operation: the caller asks Allows after each failure and then sleeps for NextPause.
package retry

import (
	"errors"
	"syscall"
	"time"
)

// Limits of the pauses.
const (
	firstPause = time.Millisecond
	maxPause   = 50 * time.Millisecond
	maxTotal   = 5 * time.Second // from the first failure to the last try
)

// Retry is the state of one operation that is tried again. The zero value is ready.
type Retry struct {
	start time.Time     // of the first failure
	pause time.Duration // the last one
}

// OutOfFiles reports whether err says that this process or the machine can open no
// more files now.
func OutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// OutOfMemory reports whether err says that there is no memory now.
func OutOfMemory(err error) bool {
	return errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.ENOBUFS)
}

// Allows reports whether the operation may be tried again after err.
func (r *Retry) Allows(err error) bool {
	if !OutOfFiles(err) && !OutOfMemory(err) {
		return false
	}
	if r.start.IsZero() {
		r.start = time.Now()
	}
	return time.Since(r.start) < maxTotal
}

// NextPause returns the time to pause now. It doubles up to a limit.
func (r *Retry) NextPause() time.Duration {
	r.pause = min(max(2*r.pause, firstPause), maxPause)
	return r.pause
}
