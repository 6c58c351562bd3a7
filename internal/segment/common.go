// SPDX-License-Identifier: Apache-2.0

//go:build linux

package segment

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// CreateCommon makes memory of n bytes, in whole pages, that several processes
// will map: zeroed, of a size that cannot change. It takes no memory before it is
// touched, so whoever touches it reserves it first. The descriptor is
// close-on-exec and owned by the caller.
func CreateCommon(n int64) (fd int, err error) {
	if err := checkRange(0, n); err != nil {
		return -1, err
	}
	page := int64(os.Getpagesize())
	if fd, err = memfd(); err != nil {
		return -1, fmt.Errorf("create common memory: %w", err)
	}
	if err = unix.Ftruncate(fd, (n+page-1)&^(page-1)); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("size common memory to %d bytes: %w", n, err)
	}
	return fd, nil
}

// CheckCommon tells whether fd is common memory of n bytes whose size cannot
// change.
func CheckCommon(fd int, n int64) error {
	have, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || have&seals != seals {
		return fmt.Errorf("common memory has seals %#x, needs %#x", have, seals)
	}
	if span, err := Span(fd); err != nil || span < n {
		return fmt.Errorf("common memory has %d bytes, needs %d", span, n)
	}
	return nil
}

// Backed reports whether all pages of a file of n bytes are there.
func Backed(fd int, n int64) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Blocks*512 >= n
}
