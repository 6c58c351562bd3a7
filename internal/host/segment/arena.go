// SPDX-License-Identifier: Apache-2.0

//go:build linux

package segment

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// CreateArena makes memory of which ranges are given out to processes that map
// it: zeroed, of a size that cannot change. That is most, in whole pages, or what
// the limit on the size of files allows (ulimit -f). It takes no memory before it
// is touched, so whoever touches it reserves it first. The descriptor is
// close-on-exec and owned by the caller.
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

// CheckArena tells whether fd is an arena of n bytes whose size cannot change.
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

// MapArena maps an arena of n bytes whole, as address space. It is left out of
// core dumps: writing one would make every page of it.
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

// wholePages rounds up.
func roundToPages[T int | int64](n T) T {
	page := T(os.Getpagesize())
	return (n + page - 1) &^ (page - 1)
}
