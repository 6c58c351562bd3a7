// SPDX-License-Identifier: Apache-2.0

package mem

import "unsafe"

// lineBytes is how much the processor writes to memory at a time.
const lineBytes = 64

// Past is Copy past the cache: the lines of dst, which another processor may have, are not
// fetched for it, nor kept. What is stored after it is seen by others after what it has
// copied. dst and src may not overlap, but are nothing to copy if they are the same.
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
	// Lines of which only a part is written are written in the cache.
	copy(dst[:head], src)
	copy(dst[head+body:n], src[head+body:n])
	streamChunks(dst[head:head+body], src[head:])
	fence()
	return n
}

// PastLines is Past of the whole of src to memory that begins with a line: what stands
// behind src in its last line is lost, so that this need not be fetched either.
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

// streamPieces streams lines in pieces: nothing else of the process goes on in the midst of
// one that must stop.
func streamChunks(dst, src []byte) {
	for at := 0; at < len(dst); at += chunkBytes {
		next := min(at+chunkBytes, len(dst))
		stream(dst[at:next], src[at:next])
	}
}

// toLine is how far it is from where memory begins to where a line does.
func toLine(b []byte) int { return int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % lineBytes) }
