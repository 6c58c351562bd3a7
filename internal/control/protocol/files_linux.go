// SPDX-License-Identifier: Apache-2.0

package protocol

import "golang.org/x/sys/unix"

// CloseFiles closes the descriptors of a frame. It ignores those that are -1.
func CloseFiles(fds ...int) {
	for _, fd := range fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// Ring wakes all threads that wait for a bell. The bell stays rung until one of them reads it. Its
// counter does not reach 2^64.
func Ring(bell int) {
	one := [8]byte{1}
	unix.Write(bell, one[:])
}
