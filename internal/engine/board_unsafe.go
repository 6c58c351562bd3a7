// SPDX-License-Identifier: Apache-2.0

package engine

// unsafe: the words of a board are used by all ranks of a host through atomics
// at fixed places of shared memory.

import (
	"sync/atomic"
	"unsafe"
)

// boardHead is the first block of a board.
type boardHead struct {
	// sleepers is how many ranks have asleep set, stuck how many of them to
	// stuckAsleep.
	sleepers atomic.Int32
	stuck    atomic.Int32
	_        [boardLine - 8]byte
	// votes is how many ranks have the memory, readers how many can read the
	// memory of all; noReads: one cannot.
	votes   atomic.Uint32
	readers atomic.Uint32
	noReads atomic.Uint32
	crowded atomic.Uint32 // rank 0 has no processor of its own; written before its vote
	// arrived is how many have published in an operation of many ranks, by its
	// slot: {number 32, ranks 32}.
	arrived [boardSlots]atomic.Uint64
	// left is how many ranks use the memory no more, ranks whose it is: of a board
	// in a block.
	left  atomic.Uint32
	ranks atomic.Uint32
	_     [boardAlign - boardLine - 24 - 8*boardSlots]byte
}

// boardRank is what a rank tells about itself. It alone writes it, but for
// asleep, which whoever wakes it takes away, and left of one that has died.
type boardRank struct {
	// done: this rank uses no publication of this number or below any more.
	done   atomic.Uint32
	asleep atomic.Uint32
	voted  atomic.Uint32 // votedHere, votedReads
	// elsewhere is the last call of which it waited long for messages.
	elsewhere atomic.Uint32
	proof     [2]uint64 // what Exposer.Reach needs; written before voted
	// left: this rank uses the memory no more, or has died.
	left atomic.Uint32
	_    [boardLine - 36]byte
	cpu  atomic.Uint32 // 1 + the number of its processor; 0: unknown
	_    [boardAlign - boardLine - 4]byte
}

// boardSlot is one publication. A payload longer than inline stands behind it.
type boardSlot struct {
	word   atomic.Uint64
	inline [boardInline]byte
}

// progress is how many bytes of the result that a scan's publication names are
// there. It belongs to a slot whose payload is behind it.
func (s *boardSlot) progress() *atomic.Int64 {
	return (*atomic.Int64)(unsafe.Pointer(&s.inline))
}

const (
	_ = uint(unsafe.Sizeof(boardHead{}) - boardAlign)
	_ = uint(unsafe.Sizeof(boardRank{}) - boardAlign)
	_ = uint(unsafe.Sizeof(boardSlot{}) - boardLine)
	_ = -uint(unsafe.Sizeof(boardSlot{}) % boardLine)
	_ = -uint(unsafe.Offsetof(boardSlot{}.inline) % 8) // for progress
)

func viewBoardHead(m []byte) *boardHead { return (*boardHead)(unsafe.Pointer(&m[0])) }
func viewBoardRank(m []byte) *boardRank { return (*boardRank)(unsafe.Pointer(&m[0])) }
func viewBoardSlot(m []byte) *boardSlot { return (*boardSlot)(unsafe.Pointer(&m[0])) }

// address is where a byte slice begins, for reduction kernels.
func address(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
