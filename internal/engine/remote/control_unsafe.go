// SPDX-License-Identifier: Apache-2.0

package remote

// unsafe: several processes use control blocks through atomics at fixed places of shared
// memory.

import (
	"sync/atomic"
	"unsafe"

	"gompi/transport"
)

// A control block is what the users of a region synchronise by:
//
//	line 0      generation, state, asleep, guard, visited, wanted
//	line 1      ticket
//	lines 2..   visits, a line each
//	then        words, 8 bytes each, one writer each
const (
	controlAlign = transport.ShareAlign
	controlLine  = 64
	// headBytes is the length of everything before the words.
	headBytes = (2 + visitPlaces) * controlLine
)

// controlHead is the beginning of a control block.
type controlHead struct {
	// generation is that of the description; 0 means that the block is free.
	generation atomic.Uint32
	// state belongs to the owner of the region.
	state atomic.Uint32
	// asleep says that the owner may sleep. A process that writes a word for it clears the
	// flag and wakes it.
	asleep atomic.Uint32
	// guard is the serial of the process that changes the region's memory; 0 means none.
	guard atomic.Uint32
	// visited has a bit for each visit that was ever used. A process that waits for the
	// guard word sets wanted.
	visited, wanted atomic.Uint32
	_               [controlLine - 24]byte
	// ticket counts the tickets that were drawn for the region's lock.
	ticket atomic.Uint64
	_      [controlLine - 8]byte
	visits [visitPlaces]visit
}

const (
	_ = uint(unsafe.Sizeof(controlHead{}) - headBytes)
	_ = uint(headBytes - unsafe.Sizeof(controlHead{}))
)

// viewControl returns the head and the words of the block at the beginning of m, which
// holds them and is aligned.
func viewControl(m []byte, words int) (*controlHead, []atomic.Uint64) {
	head := (*controlHead)(unsafe.Pointer(&m[0]))
	if words == 0 {
		return head, nil
	}
	return head, unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&m[headBytes])), words)
}

// beginsAt reports whether memory begins at a multiple of align.
func beginsAt(m []byte, align int) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(m)))&uintptr(align-1) == 0
}
