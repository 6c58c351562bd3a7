// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"
	"sync"
	"time"

	"gompi/transport"
)

// A fast box that is ready may be impossible to map at the moment: address space is limited, or
// the process has as many mappings as the kernel allows. What its sender has written there was
// sent, so it is not forgotten: it is mapped later, or the connection is cut, of which both ends
// hear.
const (
	mapAgain     = time.Millisecond // until the first further attempt, then twice as long each time,
	mapAgainMost = time.Second / 2  // up to this
	mapAgainFor  = 2 * time.Second  // until the connection is cut
)

// late is a fast box of the own segment that could not be mapped.
type late struct {
	use      use
	since    time.Time
	wait     time.Duration // between the last attempt and the next
	next     time.Time
	attempts int
	over     bool // the connection was cut
}

// waits reports whether the next attempt is not due.
func (l *late) waits(u use) bool { return l != nil && l.use == u && time.Now().Before(l.next) }

// abandoned reports whether there will be none.
func (l *late) abandoned(u use) bool { return l != nil && l.use == u && l.over }

// mapLater notes that a fast box could not be mapped, and has Poll try again; after mapAgainFor
// it cuts the connection.
func (t *Transport) mapLater(x comer, err error) {
	d, now := &t.dir, time.Now()
	l := d.late[x.entry]
	if l == nil || l.use != x.use {
		if d.late == nil {
			d.late = map[uint32]*late{}
		}
		l = &late{use: x.use, since: now, wait: mapAgain / 2}
		d.late[x.entry] = l
	}
	l.attempts++
	if now.Sub(l.since) < mapAgainFor {
		l.wait = min(2*l.wait, mapAgainMost)
		l.next = now.Add(l.wait)
		d.alarm.after(l.wait)
		return
	}
	l.over = true
	c := t.connOf(x.proc)
	t.cut(c, fmt.Errorf("shm: %d bytes for messages of process %v could not be mapped %d times in %v: %w: %w",
		x.shape.bytes(), x.proc, l.attempts, mapAgainFor, transport.ErrUnreachable, err))
}

// alarm makes the owner of a directory look there, as one who publishes does, after some time.
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
