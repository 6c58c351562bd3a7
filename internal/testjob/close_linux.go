// SPDX-License-Identifier: Apache-2.0

package testjob

import "golang.org/x/sys/unix"

func closeAll(fds []int) {
	for _, fd := range fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}
