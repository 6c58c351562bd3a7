// SPDX-License-Identifier: Apache-2.0

//go:build linux

package segment

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// atOnce processes of a host may be between a look and what they take
	// after it. With less than that free they take turns.
	maxConcurrent = 1000

	// turnWait is how long a reservation waits for the turn, shortTurnWait one
	// of a piece, whose caller may hold others up. After that it goes on
	// without: whoever has the turn may be stopped, and looks are all that it
	// takes to be safe from one that is.
	lockWait      = 10 * time.Second
	shortLockWait = 100 * time.Millisecond
	lockPoll      = time.Millisecond
)

// awaitTurn waits until this process has the turn of its host, and returns what
// ends that. The turn is a lock on the file in which the kernel says how much
// memory there is: all processes have it, of all jobs, and the kernel takes it
// back from one that dies.
func (m *Memory) awaitHostLock(n int64) (end func()) {
	wait := lockWait
	if n <= ReserveStep {
		wait = shortLockWait
	}
	for until := time.Now().Add(wait); ; time.Sleep(lockPoll) {
		if m.hostLock.TryLock() {
			if m.lock() {
				return m.releaseHostLock
			}
			m.hostLock.Unlock()
		}
		if !time.Now().Before(until) {
			return func() {}
		}
	}
}

func (m *Memory) lock() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open() && unix.Flock(m.info-1, unix.LOCK_EX|unix.LOCK_NB) == nil
}

// endTurn lets the next one reserve. Closing m does the same.
func (m *Memory) releaseHostLock() {
	m.mu.Lock()
	if m.info > 0 {
		_ = unix.Flock(m.info-1, unix.LOCK_UN)
	}
	m.mu.Unlock()
	m.hostLock.Unlock()
}
