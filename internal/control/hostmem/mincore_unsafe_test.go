// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostmem_test

// unsafe: the kernel is asked which pages there are.

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func mincore(mem, there []byte) error {
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(mem))), uintptr(len(mem)), uintptr(unsafe.Pointer(unsafe.SliceData(there)))); errno != 0 {
		return errno
	}
	return nil
}
