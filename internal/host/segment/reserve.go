// SPDX-License-Identifier: Apache-2.0

//go:build linux

package segment

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ReserveStep is how much is reserved between two looks at what there is. It
// bounds what a signal can undo, too: the kernel gives back the whole of an
// interrupted fallocate.
const ReserveStep = 4 << 20

const _ = uint(-(ReserveStep % InitialBytes)) // pieces of Take hold whole segments

// Reserve makes sure that [off, off+n) can be touched without SIGBUS. The error
// is a *NoMemoryError when memory is short; then nothing is reserved. Reserving
// twice is harmless. Cost: Check and the pages.
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
		// What stood there before this call is lost with it only if the caller
		// reserved twice and the system is full: nothing may use a range whose
		// reservation failed.
		_ = Release(fd, off, done)
	}
	return err
}

// Populate is Reserve for mapped memory, whole pages of a range whose mapping
// began on a page. The error may also say that the kernel cannot do it (before
// Linux 5.14).
func (m *Memory) Populate(mem []byte) error {
	return m.Take(int64(len(mem)), func(k int64) error {
		if err := unix.Madvise(mem[:k], unix.MADV_POPULATE_WRITE); err != nil {
			return fmt.Errorf("populate %d bytes of shared segment: %w", k, err)
		}
		mem = mem[k:]
		return nil
	})
}

// Take has piece take n bytes of shared memory, at most ReserveStep a call. It
// looks at the system's and the cgroup's free memory before each, because inside
// a full memory cgroup the kernel kills instead of refusing. Where memory is
// short it does that when it has the host's turn: what several processes see at
// the same moment is not there for each of them.
func (m *Memory) Take(n int64, piece func(k int64) error) error {
	return m.take(n, ReserveStep, piece)
}

// take is Take of at most step bytes a call.
func (m *Memory) take(n, step int64, piece func(k int64) error) error {
	spare, asked := margin(n), false
	for n > 0 {
		tight, err := m.checkFree(n, step, spare)
		if err == nil && tight && !asked {
			asked = true
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

// ReserveTaken is Reserve for a caller that Takes memory for several ranges: of
// one, of at most ReserveStep bytes, without a look.
func ReserveTaken(fd int, off, n int64) error {
	if err := checkRange(off, n); err != nil {
		return err
	}
	return reserve(fd, off, n)
}

// reserve is Reserve of one piece without a look.
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
