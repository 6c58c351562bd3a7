// SPDX-License-Identifier: Apache-2.0

//go:build linux

package huge

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unsafe: pages are addresses. Nothing is read or written through them.

func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }

// collapse turns the page at addr into a huge one in place. The contents stay, also while
// other threads use them. It returns the time that this took.
func collapse(addr, n uintptr) (time.Duration, error) {
	start := time.Now()
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, addr, n, unix.MADV_COLLAPSE)
	took := time.Since(start)
	if errno != 0 {
		return took, errno
	}
	return took, nil
}
