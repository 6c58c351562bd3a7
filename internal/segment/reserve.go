// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"gompi/internal/cgroup"
)

const (
	// reserveMargin stays free for everybody else: what the check finds is
	// out of date when the memory is taken.
	reserveMargin = 2 << 20
	// reserveStep bounds what a signal can undo: the kernel gives back the
	// whole of an interrupted fallocate.
	reserveStep = 4 << 20
)

// NoMemoryError tells that shared memory cannot be reserved.
type NoMemoryError struct {
	// Need and Found are bytes: asked for (with a margin of 2 MiB), and
	// available under Limit; Found is -1 if the kernel refused and nobody
	// knows how much there was.
	Need, Found int64
	Limit       string // what is short: "system", "memory cgroup", "shared memory"
}

func (e *NoMemoryError) Error() string {
	if e.Found < 0 {
		return fmt.Sprintf("not enough memory for shared segment: %s needed, refused by the kernel (%s)", mib(e.Need), e.Limit)
	}
	return fmt.Sprintf("not enough memory for shared segment: %s needed, %s found (%s)", mib(e.Need), mib(e.Found), e.Limit)
}

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// Reserve makes sure that [off, off+n) can be touched without SIGBUS. It looks
// at the system's and the cgroup's free memory first, because inside a full
// memory cgroup the kernel kills instead of refusing. The error is a
// *NoMemoryError when memory is short; then nothing is reserved. Reserving
// twice is harmless. Cost: CheckMemory and the pages.
func Reserve(fd int, off, n int64) error {
	if err := checkRange(off, n); err != nil {
		return err
	}
	if err := CheckMemory(n); err != nil {
		return err
	}
	return reserve(fd, off, n)
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

// CheckMemory tells, as a *NoMemoryError, if n bytes cannot be reserved now. It
// reads a few small files (20 us, some hundred us in a cgroup with a limit).
func CheckMemory(n int64) error {
	return checkMemory(n, available(), cgroup.MemoryHeadroom)
}

// checkMemory compares need with what the system (free, negative if unknown)
// and the cgroup have.
func checkMemory(n, free int64, headroom func() (int64, bool)) error {
	need := n + reserveMargin
	if free >= 0 && free < need {
		return &NoMemoryError{Need: need, Found: free, Limit: "system"}
	}
	if left, limited := headroom(); limited && left < need {
		return &NoMemoryError{Need: need, Found: left, Limit: "memory cgroup"}
	}
	return nil
}

// available is the kernel's own estimate of memory that can be had without
// swapping, in bytes, or -1.
func available() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return -1
	}
	defer f.Close()
	var buf [512]byte // MemAvailable stands in the third line
	n, err := f.Read(buf[:])
	if err != nil {
		return -1
	}
	return parseAvailable(buf[:n])
}

func parseAvailable(text []byte) int64 {
	_, rest, ok := bytes.Cut(text, []byte("MemAvailable:"))
	if !ok {
		return -1
	}
	num, _, ok := bytes.Cut(bytes.TrimLeft(rest, " "), []byte(" kB"))
	if !ok {
		return -1
	}
	kib, err := strconv.ParseInt(string(num), 10, 64)
	if err != nil || kib < 0 || kib > 1<<52 {
		return -1
	}
	return kib << 10
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
