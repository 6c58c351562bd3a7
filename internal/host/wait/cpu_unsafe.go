// SPDX-License-Identifier: Apache-2.0

//go:build linux

package wait

// unsafe: the kernel writes the number into a variable.

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// CPU returns the number of the processor that the caller runs on, or -1 if it is not
// known. It costs a system call.
func CPU() int {
	var cpu uint32
	if _, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); errno != 0 {
		return -1
	}
	return int(cpu)
}
