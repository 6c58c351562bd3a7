// SPDX-License-Identifier: Apache-2.0

//go:build linux

package segment

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxConcurrent is the assumed number of processes of a host that may be between a
	// check and a take. With less free memory than all of these need, they take the lock.
	maxConcurrent = 1000

	// lockWait is how long a reservation waits for the host's lock. A reservation of one
	// piece waits shortLockWait, because its caller may delay others. After that it goes
	// on without the lock: the process that holds it may be stopped. Then only the check
	// protects, as it does against a process without the lock.
	lockWait      = 10 * time.Second
	shortLockWait = 100 * time.Millisecond
	lockPoll      = time.Millisecond
)

// awaitHostLock waits for the lock of this host on memory and returns the function that
// releases it. It is a lock on /proc/meminfo: processes of all jobs can open that file, and
// the kernel releases the lock of a process that dies.
func (m *Memory) awaitHostLock(n int64) (release func()) {
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

// lock tries to take the lock of the host.
func (m *Memory) lock() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open() && unix.Flock(m.info-1, unix.LOCK_EX|unix.LOCK_NB) == nil
}

// releaseHostLock releases the lock for the next process. Close does the same.
func (m *Memory) releaseHostLock() {
	m.mu.Lock()
	if m.info > 0 {
		_ = unix.Flock(m.info-1, unix.LOCK_UN)
	}
	m.mu.Unlock()
	m.hostLock.Unlock()
}
