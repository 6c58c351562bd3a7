// SPDX-License-Identifier: Apache-2.0

package mem

import "unsafe"

// lineBytes is how much the processor writes to memory at a time, pastStep what stream
// takes.
const (
	lineBytes = 64
	pastStep  = 128
)

// Past is Copy past the cache: the lines of dst, which another processor may have, are not
// fetched for it, nor kept. What is stored after it is seen by others after what it has
// copied. dst and src may not overlap, but are nothing to copy if they are the same.
func Past(dst, src []byte) int {
	n := min(len(dst), len(src))
	if unsafe.SliceData(dst) == unsafe.SliceData(src) {
		return n
	}
	head := toLine(dst)
	body := (n - head) / pastStep * pastStep
	if body <= 0 {
		return copy(dst, src)
	}
	// Lines of which only a part is written are written in the cache.
	copy(dst[:head], src)
	copy(dst[head+body:n], src[head+body:n])
	// In pieces: nothing else of the process goes on in the midst of one that must stop.
	for at, end := head, head+body; at < end; at += piece {
		next := min(at+piece, end)
		stream(dst[at:next], src[at:next])
	}
	return n
}

// toLine is how far it is from where memory begins to where a line does.
func toLine(b []byte) int { return int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % lineBytes) }
