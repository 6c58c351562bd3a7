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

// copyBytes is the most that one call copies: longer ones would hold off a stop of the
// world.
const copyBytes = 256 << 10

// Copy copies len(dst) bytes of src, which has as many, while others may write to src: what
// was written meanwhile is there or not, byte by byte. The kernel does it, so that the race
// detector, for which it would be a race, does not see it; its cost is 0.2 us for each page
// beside that of copying.
func Copy(dst, src []byte) error {
	if len(src) < len(dst) {
		panic(fmt.Sprintf("gompi: BUG: %d bytes of %d are copied", len(dst), len(src)))
	}
	pid := os.Getpid()
	for len(dst) > 0 {
		k := min(len(dst), copyBytes)
		local := unix.Iovec{Base: unsafe.SliceData(dst), Len: uint64(k)}
		from := unix.Iovec{Base: unsafe.SliceData(src), Len: uint64(k)} // as an address that Go moves with what it is of
		n, _, errno := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(pid),
			uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&from)), 1, 0)
		if errno != 0 || n == 0 || int(n) > k {
			return fmt.Errorf("process_vm_readv of this process, %d bytes: %w", k, errno)
		}
		dst, src = dst[n:], src[n:]
	}
	return nil
}

// CanCopy is why Copy does not work here; nil: it does.
func CanCopy() error {
	var to [1]byte
	return Copy(to[:], []byte{1})
}
