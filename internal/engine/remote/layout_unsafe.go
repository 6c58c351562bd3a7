// SPDX-License-Identifier: Apache-2.0

package remote

// unsafe: packing needs the address of the first element, and overlap compares addresses.

import (
	"unsafe"

	"gompi/internal/host/mem"
)

// phases is the largest alignment of elements, in bytes.
const phases = 8

// phaseOf returns the address of the first byte, modulo phases.
func phaseOf(m []byte) uint8 {
	return uint8(uintptr(unsafe.Pointer(unsafe.SliceData(m))) % phases)
}

// pack copies packed bytes [off, off+len(dst)) from a region, which contains them.
func (l *Layout) pack(dst, region []byte, off int64) {
	if l.Off >= 0 && l.Off < int64(len(region)) {
		l.Type.Pack(dst, unsafe.Pointer(&region[l.Off]), off)
		return
	}
	// The first element's address is outside, where no pointer may be.
	for len(dst) > 0 {
		at, n := l.run(off, int64(len(dst)))
		mem.Copy(dst, region[at:][:n])
		dst, off = dst[n:], off+n
	}
}

// unpack copies src to packed bytes [off, off+len(src)) in a region.
func (l *Layout) unpack(region []byte, off int64, src []byte) {
	if l.Off >= 0 && l.Off < int64(len(region)) {
		l.Type.Unpack(unsafe.Pointer(&region[l.Off]), off, src)
		return
	}
	for len(src) > 0 {
		at, n := l.run(off, int64(len(src)))
		mem.Copy(region[at:][:n], src)
		src, off = src[n:], off+n
	}
}

// overlap reports whether two memories have a byte in common.
func overlap(a, b []byte) bool {
	x, y := uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return x < y+uintptr(len(b)) && y < x+uintptr(len(a))
}
