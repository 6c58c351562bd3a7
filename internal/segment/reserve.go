// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// reserveStep bounds what a signal can undo: the kernel gives back the whole
// of an interrupted fallocate.
const reserveStep = 4 << 20

// Reserve makes sure that [off, off+n) can be touched without SIGBUS. It looks
// at the system's and the cgroup's free memory first, because inside a full
// memory cgroup the kernel kills instead of refusing. The error is a
// *NoMemoryError when memory is short; then nothing is reserved. Reserving
// twice is harmless. Cost: Check and the pages.
func (m *Memory) Reserve(fd int, off, n int64) error {
	if err := checkRange(off, n); err != nil {
		return err
	}
	if err := m.Check(n); err != nil {
		return err
	}
	return reserve(fd, off, n)
}

// Populate is Reserve for mapped memory, whole pages of a range whose mapping
// began on a page. The error may also say that the kernel cannot do it (before
// Linux 5.14).
func (m *Memory) Populate(mem []byte) error {
	if err := m.Check(int64(len(mem))); err != nil {
		return err
	}
	if err := unix.Madvise(mem, unix.MADV_POPULATE_WRITE); err != nil {
		return fmt.Errorf("populate %d bytes of shared segment: %w", len(mem), err)
	}
	return nil
}

func reserve(fd int, off, n int64) error {
	for done := int64(0); done < n; {
		step := min(n-done, reserveStep)
		err := fallocate(fd, 0, off+done, step)
		if err == nil {
			done += step
			continue
		}
		if done > 0 {
			// What stood there before this call is lost with it only if the
			// caller reserved twice and the system is full: nothing may use
			// a range whose reservation failed.
			_ = Release(fd, off, done)
		}
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.ENOMEM) {
			return &NoMemoryError{Need: n, Found: -1, Limit: "shared memory"}
		}
		return fmt.Errorf("reserve %d bytes of shared segment at %d: %w", n, off, err)
	}
	return nil
}

// fallocate repeats a call that a signal interrupted; Go's own preemption
// signals would otherwise show up as errors.
func fallocate(fd int, mode uint32, off, n int64) error {
	for {
		err := unix.Fallocate(fd, mode, off, n)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
