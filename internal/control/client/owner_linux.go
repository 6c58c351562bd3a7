// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Owner returns the user whose process listens at an address, as the kernel knows it.
func Owner(addr string) (uid int, err error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return 0, fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: addr}); err != nil {
		return 0, fmt.Errorf("connect: %w", err)
	}
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, fmt.Errorf("whose socket it is: %w", err)
	}
	return int(cred.Uid), nil
}
