// SPDX-License-Identifier: Apache-2.0

package huge

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// unsafe because pages are addresses: nothing is read or written through them.

func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }

// collapse makes the page at addr a huge one, in place: contents and meaning of
// the memory stay, whoever uses it meanwhile.
func collapse(addr, n uintptr) error {
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, addr, n, unix.MADV_COLLAPSE)
	if errno != 0 {
		return errno
	}
	return nil
}
