// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"syscall"
	"time"

	"gompi/internal/wire"
)

// retry is how long something goes on being tried for which this process has
// had no file descriptors: the other process is not to blame, and descriptors
// come back when files are closed here. The zero value is ready.
type retry struct {
	since time.Time
	next  time.Duration
}

const (
	retryFirst = time.Millisecond
	retryMost  = 50 * time.Millisecond
	retryAll   = 5 * time.Second
)

// worth reports whether to pause and try again after err.
func (r *retry) worth(err error) bool {
	if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
		return false
	}
	if r.since.IsZero() {
		r.since = time.Now()
	}
	return time.Since(r.since) < retryAll
}

func (r *retry) pause() {
	r.next = min(max(2*r.next, retryFirst), retryMost)
	time.Sleep(r.next)
}

// fetchContact asks the control plane for a process. The lock is not held.
func (e *Engine) fetchContact(p wire.ProcID) (wire.Contact, error) {
	var r retry
	for {
		c, err := e.cfg.Control.Contact(p)
		if err == nil || !r.worth(err) {
			return c, err
		}
		r.pause()
	}
}
