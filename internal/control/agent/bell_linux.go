// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// newBell makes a bell.
func newBell() (int, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return -1, fmt.Errorf("create bell: %w", err)
	}
	return fd, nil
}

// pairOf is an arena and a bell as files of their own.
func pairOf(arena, bell int) (*Files, error) {
	fd, err := unix.FcntlInt(uintptr(arena), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("share an arena: %w", err)
	}
	own, err := unix.FcntlInt(uintptr(bell), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("share a bell: %w", err)
	}
	f := &Files{segment: fd, bell: own}
	f.refs.Store(1)
	return f, nil
}
