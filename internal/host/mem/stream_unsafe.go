// SPDX-License-Identifier: Apache-2.0

package mem

import "unsafe"

// lineBytes is the size of a cache line, the unit of transfers to memory.
const lineBytes = 64

// Stream is Copy with non-temporal stores: it does not fetch the lines of dst, which
// another processor may have, and does not keep them in the cache. Other processors see
// later stores after the copied data. dst and src may not overlap, except that they may be
// the same memory; then there is nothing to copy.
func Stream(dst, src []byte) int {
	n := min(len(dst), len(src))
	if unsafe.SliceData(dst) == unsafe.SliceData(src) {
		return n
	}
	head := toLine(dst)
	body := (n - head) / lineBytes * lineBytes
	if body <= 0 {
		return copy(dst, src)
	}
	// Lines at the ends that are written in part go through the cache.
	copy(dst[:head], src)
	copy(dst[head+body:n], src[head+body:n])
	streamChunks(dst[head:head+body], src[head:])
	fence()
	return n
}

// StreamLines is Stream of the whole of src to memory that begins at a cache line. It may
// destroy the rest of the last line, so that it need not fetch that line either.
func StreamLines(dst, src []byte) int {
	n := len(src)
	body := n / lineBytes * lineBytes
	if toLine(dst) != 0 || len(dst) < body+lineBytes || unsafe.SliceData(dst) == unsafe.SliceData(src) {
		return Stream(dst, src)
	}
	if body < n {
		var last [lineBytes]byte
		copy(last[:], src[body:])
		stream(dst[body:body+lineBytes], last[:])
	}
	streamChunks(dst[:body], src)
	fence()
	return n
}

// streamChunks calls stream in chunks. The garbage collector cannot stop this goroutine
// inside a call, so a call must be short.
func streamChunks(dst, src []byte) {
	for at := 0; at < len(dst); at += chunkBytes {
		next := min(at+chunkBytes, len(dst))
		stream(dst[at:next], src[at:next])
	}
}

// toLine returns the distance from the beginning of b to the next cache line.
func toLine(b []byte) int { return int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % lineBytes) }
