// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Line formats one line of gompirun's own.
func Line(format string, a ...any) string {
	return "gompirun: " + strings.TrimRight(fmt.Sprintf(format, a...), "\n") + "\n"
}

// Say prints a line of gompirun's own without a supervisor.
func Say(format string, a ...any) {
	WriteAll(2, []byte(Line(format, a...)))
}

// WriteAll writes all of b to a descriptor, even to one that is non-blocking.
func WriteAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		switch err {
		case nil:
			b = b[n:]
		case unix.EINTR:
		case unix.EAGAIN:
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1); err != nil && err != unix.EINTR {
				return err
			}
		default:
			return err
		}
	}
	return nil
}
