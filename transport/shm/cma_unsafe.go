// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Copies between address spaces. unsafe because the kernel wants addresses. RawSyscall
// because a chunk's copy never blocks, and a scheduler hand-off would cost more than the
// copy. The chunk size bounds how long a copy delays a stop of the world.

// cmaRead fills dst from address addr of process pid, and then reads mark from markAddr,
// unless that is 0. A mark read after the data tells whether the source was still valid. It
// costs 0.35 us.
func cmaRead(pid int, dst []byte, addr, markAddr uint64) (mark uint64, err error) {
	want, pieces := len(dst), 0
	if markAddr != 0 {
		want, pieces = want+8, 1
	}
	for got := 0; got < want; {
		var local [2]unix.Iovec
		var remote [2]unix.RemoteIovec
		k := 0
		if got < len(dst) {
			local[0] = unix.Iovec{Base: &dst[got], Len: uint64(len(dst) - got)}
			remote[0] = unix.RemoteIovec{Base: uintptr(addr) + uintptr(got), Len: len(dst) - got}
			k = 1
		}
		local[k] = unix.Iovec{Base: (*byte)(unsafe.Pointer(&mark)), Len: 8}
		remote[k] = unix.RemoteIovec{Base: uintptr(markAddr), Len: 8}
		n, _, errno := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(pid),
			uintptr(unsafe.Pointer(&local[0])), uintptr(k+pieces),
			uintptr(unsafe.Pointer(&remote[0])), uintptr(k+pieces), 0)
		// A copy may end short, but only between the two parts or inside the first: a mark
		// is aligned and lies in one page.
		if errno != 0 || n == 0 || got+int(n) > want || got+int(n) > len(dst) && got+int(n) < want {
			return 0, cmaError("process_vm_readv", pid, want-got, errno)
		}
		got += int(n)
	}
	return mark, nil
}

// cmaWrite copies src to address addr of process pid.
func cmaWrite(pid int, addr uint64, src []byte) error {
	for len(src) > 0 {
		local := unix.Iovec{Base: &src[0], Len: uint64(len(src))}
		remote := unix.RemoteIovec{Base: uintptr(addr), Len: len(src)}
		n, _, errno := unix.RawSyscall6(unix.SYS_PROCESS_VM_WRITEV, uintptr(pid),
			uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
		put := int(n)
		if errno != 0 || put <= 0 || put > len(src) {
			return cmaError("process_vm_writev", pid, len(src), errno)
		}
		src, addr = src[put:], addr+uint64(put)
	}
	return nil
}

func cmaError(call string, pid, n int, errno unix.Errno) error {
	if errno == 0 {
		return fmt.Errorf("%s: process %d: short copy, %d bytes missing", call, pid, n)
	}
	return fmt.Errorf("%s: process %d, %d bytes: %w", call, pid, n, errno)
}

// ringBell makes an eventfd readable. EAGAIN means that it is already.
func ringBell(fd int) {
	one := [8]byte{1}
	unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&one)), 8)
}

// hushBell makes a non-blocking eventfd unreadable.
func hushBell(fd int) {
	var n [8]byte
	unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&n)), 8)
}
