// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"
	"sync"
	"time"

	"gompi/transport"
)

// A fast box that is ready may be impossible to map for a while: address space is limited,
// or the process has as many mappings as the kernel allows. Its messages count as sent, so
// they must not be lost. This process maps it later, or cuts the connection, which both
// ends learn.
const (
	mapRetryFirst = time.Millisecond // until the second attempt; then twice as long each time,
	mapRetryMost  = time.Second / 2  // up to this
	mapRetryFor   = 2 * time.Second  // until the connection is cut
)

// mapRetry is a fast box in the own segment that could not be mapped.
type mapRetry struct {
	use      use
	since    time.Time
	wait     time.Duration // between the last attempt and the next
	next     time.Time
	attempts int
	over     bool // the connection was cut
}

// waits reports whether the next attempt is not due yet.
func (l *mapRetry) waits(u use) bool { return l != nil && l.use == u && time.Now().Before(l.next) }

// abandoned reports whether there will be no further attempt.
func (l *mapRetry) abandoned(u use) bool { return l != nil && l.use == u && l.over }

// retryMap records that a fast box could not be mapped, and makes Poll try again. After
// mapRetryFor it cuts the connection.
func (t *Transport) retryMap(x comer, err error) {
	d, now := &t.dir, time.Now()
	l := d.mapRetries[x.entry]
	if l == nil || l.use != x.use {
		if d.mapRetries == nil {
			d.mapRetries = map[uint32]*mapRetry{}
		}
		l = &mapRetry{use: x.use, since: now, wait: mapRetryFirst / 2}
		d.mapRetries[x.entry] = l
	}
	l.attempts++
	if now.Sub(l.since) < mapRetryFor {
		l.wait = min(2*l.wait, mapRetryMost)
		l.next = now.Add(l.wait)
		d.alarm.after(l.wait)
		return
	}
	l.over = true
	c := t.connOf(x.proc)
	t.cut(c, fmt.Errorf("shm: %d bytes for messages of process %v could not be mapped %d times in %v: %w: %w",
		x.shape.bytes(), x.proc, l.attempts, mapRetryFor, transport.ErrUnreachable, err))
}

// alarm makes the owner of a directory scan it after some time, as if a sender had
// published an entry.
type alarm struct {
	mu   sync.Mutex
	own  *headWords // nil after close
	bell int
}

func (a *alarm) after(d time.Duration) {
	time.AfterFunc(d, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.own != nil {
			a.own.published.Add(1)
			wake(a.own, a.bell)
		}
	})
}

// close ends the use of the words, which are about to be unmapped.
func (a *alarm) close() {
	a.mu.Lock()
	a.own = nil
	a.mu.Unlock()
}
