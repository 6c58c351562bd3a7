// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// newBell makes a bell beside an arena, as files of their own.
func newBell(arena int) (*Files, error) {
	fd, err := unix.FcntlInt(uintptr(arena), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("share an arena: %w", err)
	}
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("create bell: %w", err)
	}
	f := &Files{segment: fd, bell: bell}
	f.refs.Store(1)
	return f, nil
}
