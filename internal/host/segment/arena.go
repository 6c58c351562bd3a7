// SPDX-License-Identifier: Apache-2.0

//go:build linux

package segment

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// CreateArena creates an arena: zeroed memory of fixed size, whose ranges the agent gives
// out to processes that map it. The size is most, rounded up to whole pages, or less if
// the limit on the size of files demands it (ulimit -f). An arena takes memory only when
// it is touched, so a process must reserve a range before it touches it. The descriptor is
// close-on-exec and belongs to the caller.
func CreateArena(most int64) (fd int, n int64, err error) {
	if err := checkRange(0, most); err != nil {
		return -1, 0, err
	}
	page := int64(os.Getpagesize())
	n = roundToPages(most)
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &l); err == nil && l.Cur < uint64(n) {
		n = int64(l.Cur) &^ (page - 1)
	}
	if fd, err = memfd(); err != nil {
		return -1, 0, fmt.Errorf("create common memory: %w", err)
	}
	if err = unix.Ftruncate(fd, n); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		unix.Close(fd)
		return -1, 0, fmt.Errorf("size common memory to %d bytes: %w", n, err)
	}
	return fd, n, nil
}

// CheckArena checks that fd is an arena of n bytes whose size cannot change.
func CheckArena(fd int, n int64) error {
	have, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || have&seals != seals {
		return fmt.Errorf("common memory has seals %#x, needs %#x", have, seals)
	}
	if span, err := Span(fd); err != nil || span != n {
		return fmt.Errorf("common memory has %d bytes, needs %d", span, n)
	}
	return nil
}

// MapArena maps the whole address space of an arena of n bytes. It excludes the mapping from
// core dumps, because writing one would allocate every page of it.
func MapArena(fd int, n int64) ([]byte, error) {
	mem, err := Map(fd, 0, n, true)
	if err == nil {
		err = unix.Madvise(mem, unix.MADV_DONTDUMP)
	}
	if err != nil && mem != nil {
		_ = Unmap(mem)
		return nil, fmt.Errorf("keep an arena out of core dumps: %w", err)
	}
	return mem, err
}

// roundToPages rounds n up to whole pages.
func roundToPages[T int | int64](n T) T {
	page := T(os.Getpagesize())
	return (n + page - 1) &^ (page - 1)
}
