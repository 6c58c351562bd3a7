// SPDX-License-Identifier: Apache-2.0

//go:build linux

package segment

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ReserveStep is how much is reserved between two checks of the free memory. It also bounds
// the loss by a signal: the kernel gives back the whole of an interrupted fallocate.
const ReserveStep = 4 << 20

const _ = uint(-(ReserveStep % InitialBytes)) // a piece of Take holds whole segments

// Reserve makes sure that [off, off+n) can be touched without SIGBUS. The error is a
// *NoMemoryError if memory is short; then nothing is reserved. To reserve twice does no
// harm. The cost is that of the checks, and of the pages.
func (m *Memory) Reserve(fd int, off, n int64) error {
	if err := checkRange(off, n); err != nil {
		return err
	}
	done := int64(0)
	err := m.Take(n, func(k int64) error {
		err := reserve(fd, off+done, k)
		if err == nil {
			done += k
		}
		return err
	})
	if err != nil && done > 0 {
		// Release also drops what an earlier reservation held. That happens only if the
		// caller reserves twice and the system is full, and no one may use a range whose
		// reservation failed.
		_ = Release(fd, off, done)
	}
	return err
}

// Populate is Reserve for mapped memory: whole pages of a mapping that began at a page. The
// error may also say that the kernel cannot do it (Linux before 5.14).
func (m *Memory) Populate(mem []byte) error {
	return m.Take(int64(len(mem)), func(k int64) error {
		if err := unix.Madvise(mem[:k], unix.MADV_POPULATE_WRITE); err != nil {
			return fmt.Errorf("populate %d bytes of shared segment: %w", k, err)
		}
		mem = mem[k:]
		return nil
	})
}

// Take calls piece to take n bytes of shared memory, at most ReserveStep bytes a call. It
// checks the free memory of the system and of the cgroup before each call, because in a full
// memory cgroup the kernel kills instead of refusing. If memory is short, Take goes on only
// under the host's lock. Otherwise several processes could see the same free memory at the
// same moment, and all take it.
func (m *Memory) Take(n int64, piece func(k int64) error) error {
	return m.take(n, ReserveStep, piece)
}

// take is Take with at most step bytes a call.
func (m *Memory) take(n, step int64, piece func(k int64) error) error {
	spare, locked := margin(n), false
	for n > 0 {
		tight, err := m.checkFree(n, step, spare)
		if err == nil && tight && !locked {
			locked = true
			defer m.awaitHostLock(n)()
			continue
		}
		k := min(n, step)
		if err == nil {
			err = piece(k)
		}
		if err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// ReserveTaken is Reserve without a check, for a caller that Takes memory for several ranges.
// It reserves one range of at most ReserveStep bytes.
func ReserveTaken(fd int, off, n int64) error {
	if err := checkRange(off, n); err != nil {
		return err
	}
	return reserve(fd, off, n)
}

// reserve reserves one piece without a check.
func reserve(fd int, off, n int64) error {
	err := fallocate(fd, 0, off, n)
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.ENOMEM):
		return &NoMemoryError{Need: n, Found: -1, Limit: "shared memory"}
	case err != nil:
		return fmt.Errorf("reserve %d bytes of shared segment at %d: %w", n, off, err)
	}
	return nil
}

// fallocate repeats the call while a signal interrupts it. Go's own preemption signals would
// otherwise cause errors.
func fallocate(fd int, mode uint32, off, n int64) error {
	for {
		err := unix.Fallocate(fd, mode, off, n)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
