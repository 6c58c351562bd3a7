// SPDX-License-Identifier: Apache-2.0

package protocol

import "golang.org/x/sys/unix"

// CloseFiles closes those descriptors of a frame, or of a welcome, that there are.
func CloseFiles(fds ...int) {
	for _, fd := range fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// Ring wakes all who have a bell among what wakes them, and takes nothing away. That
// it was rung 2^64 times does not come to pass.
func Ring(bell int) {
	one := [8]byte{1}
	unix.Write(bell, one[:])
}
