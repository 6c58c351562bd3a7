// SPDX-License-Identifier: Apache-2.0

//go:build linux

package segment

// unsafe: a mapping gets an address that suits huge pages.

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"gompi/internal/host/huge"
)

// mmap maps n bytes of a file from off on. From the size of a huge page on, the mapping has
// the same position relative to huge pages as the bytes have in the file. Only then can the
// kernel map a huge page of the file as such. The kernel chooses such an address by itself
// only where it makes huge pages by itself. If address space is short (ulimit -v), the
// mapping may be anywhere.
func mmap(fd int, off int64, n, prot int) ([]byte, error) {
	if n < huge.PageBytes {
		return unix.Mmap(fd, off, n, prot, unix.MAP_SHARED)
	}
	var at unsafe.Pointer
	how, size := unix.MAP_SHARED, uintptr(roundToPages(n))
	hole, err := unix.MmapPtr(-1, 0, nil, size+huge.PageBytes, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	skip := (uintptr(off) - uintptr(hole)) % huge.PageBytes
	if err == nil {
		at, how = unsafe.Add(hole, skip), how|unix.MAP_FIXED
	}
	p, failed := unix.MmapPtr(fd, off, at, uintptr(n), prot, how)
	if err == nil { // unmap the rest of the hole
		if failed != nil {
			_ = unix.MunmapPtr(hole, size+huge.PageBytes)
		} else {
			if skip > 0 {
				_ = unix.MunmapPtr(hole, skip)
			}
			_ = unix.MunmapPtr(unsafe.Add(p, size), huge.PageBytes-skip)
		}
	}
	if failed != nil {
		return nil, failed
	}
	return unsafe.Slice((*byte)(p), n), nil
}

// munmap unmaps what mmap has mapped.
func munmap(mem []byte) error {
	if len(mem) < huge.PageBytes {
		return unix.Munmap(mem)
	}
	if len(mem) != cap(mem) {
		return unix.EINVAL
	}
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem)))
}

// onHugePage reports whether mem begins at an address where a huge page can begin.
func onHugePage(mem []byte) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%huge.PageBytes == 0
}
