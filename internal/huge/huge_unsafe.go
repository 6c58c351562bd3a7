// SPDX-License-Identifier: Apache-2.0

package huge

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unsafe because pages are addresses: nothing is read or written through them.

func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }

// threadTime is the processor time that the calling thread has used.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// collapse makes the page at addr a huge one, in place: contents and meaning of
// the memory stay, whoever uses it meanwhile.
func collapse(addr, n uintptr) error {
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, addr, n, unix.MADV_COLLAPSE)
	if errno != 0 {
		return errno
	}
	return nil
}
