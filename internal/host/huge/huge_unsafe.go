// SPDX-License-Identifier: Apache-2.0

//go:build linux

package huge

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unsafe because pages are addresses: nothing is read or written through them.

func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }

// collapse makes the page at addr a huge one, in place: contents and meaning of
// the memory stay, whoever uses it meanwhile. It tells how long that took.
func collapse(addr, n uintptr) (time.Duration, error) {
	begun := time.Now()
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, addr, n, unix.MADV_COLLAPSE)
	took := time.Since(begun)
	if errno != 0 {
		return took, errno
	}
	return took, nil
}
