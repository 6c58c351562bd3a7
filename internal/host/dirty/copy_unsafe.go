// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dirty

// unsafe: the kernel copies from an address.

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// copyBytes bounds one call. A longer one would delay the garbage collector's stop of the
// world.
const copyBytes = 256 << 10

// Copy copies len(dst) bytes of src while others may write to src; src must have as many.
// Of a concurrent write each byte may or may not be in the copy. The kernel does the copy,
// so the race detector does not report it. It costs 0.2 us for each page besides the copy
// itself.
func Copy(dst, src []byte) error {
	if len(src) < len(dst) {
		panic(fmt.Sprintf("gompi: BUG: copy of %d bytes from %d", len(dst), len(src)))
	}
	pid := os.Getpid()
	for len(dst) > 0 {
		k := min(len(dst), copyBytes)
		local := unix.Iovec{Base: unsafe.SliceData(dst), Len: uint64(k)}
		from := unix.Iovec{Base: unsafe.SliceData(src), Len: uint64(k)} // a pointer, so that Go updates it when a stack moves
		n, _, errno := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(pid),
			uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&from)), 1, 0)
		if errno != 0 || n == 0 || int(n) > k {
			return fmt.Errorf("process_vm_readv of this process, %d bytes: %w", k, errno)
		}
		dst, src = dst[n:], src[n:]
	}
	return nil
}

// CanCopy returns the reason why Copy does not work here, or nil if it works.
func CanCopy() error {
	var to [1]byte
	return Copy(to[:], []byte{1})
}
