// SPDX-License-Identifier: Apache-2.0

//go:build linux

package segment

// unsafe: a mapping is put at an address that suits huge pages.

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"gompi/internal/host/huge"
)

// mmap maps n bytes of a file from off on. From the size of a huge page on they lie in
// memory as they do in the file, seen from the borders of huge pages, so that those of the
// file can be mapped as such; the kernel does that by itself only where it makes them by
// itself. Where address space is short (ulimit -v) they lie anywhere.
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
	if err == nil { // what is left of the hole
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

// munmap undoes mmap.
func munmap(mem []byte) error {
	if len(mem) < huge.PageBytes {
		return unix.Munmap(mem)
	}
	if len(mem) != cap(mem) {
		return unix.EINVAL
	}
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem)))
}

// onHugePage reports whether memory begins where a huge page can.
func onHugePage(mem []byte) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%huge.PageBytes == 0
}
