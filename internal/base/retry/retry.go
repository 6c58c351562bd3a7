// SPDX-License-Identifier: Apache-2.0

// Package retry says how long something goes on being tried for which this
// process has had no file descriptors or no memory: no other process is to
// blame, and both come back when something is closed here.
package retry

import (
	"errors"
	"syscall"
	"time"
)

// The first pause, the longest, and how long the tries take together.
const (
	firstPause = time.Millisecond
	maxPause   = 50 * time.Millisecond
	maxTotal   = 5 * time.Second
)

// Retry is one thing that is tried. The zero value is ready.
type Retry struct {
	start time.Time
	pause time.Duration
}

// Files reports whether an error is that this process, or the machine, can open
// no more files just now.
func OutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// Memory reports whether an error is that there is no memory just now.
func OutOfMemory(err error) bool {
	return errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.ENOBUFS)
}

// Worth reports whether to pause and try again after err.
func (r *Retry) Allows(err error) bool {
	if !OutOfFiles(err) && !OutOfMemory(err) {
		return false
	}
	if r.start.IsZero() {
		r.start = time.Now()
	}
	return time.Since(r.start) < maxTotal
}

// Pause is how long to pause now; each is longer than the one before.
func (r *Retry) NextPause() time.Duration {
	r.pause = min(max(2*r.pause, firstPause), maxPause)
	return r.pause
}
