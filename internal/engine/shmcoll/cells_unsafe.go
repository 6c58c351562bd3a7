// SPDX-License-Identifier: Apache-2.0

package shmcoll

// unsafe: the words of a board are used by all ranks of a host through atomics
// at fixed places of shared memory.

import (
	"sync/atomic"
	"unsafe"

	"gompi/internal/control/collmem"
)

// headLines is the first block of a board.
type headLines struct {
	// sleepers is how many ranks have asleep set, stuck how many of them to
	// stuckAsleep.
	sleepers atomic.Int32
	stuck    atomic.Int32
	waiting  atomic.Int32 // how many have theirs set
	_        [lineBytes - 12]byte
	// votes is how many ranks have the memory, readers how many can read the
	// memory of all; noReads: one cannot.
	votes          atomic.Uint32
	readers        atomic.Uint32
	noReads        atomic.Uint32
	oversubscribed atomic.Uint32 // rank 0 has no processor of its own; written before its vote
	// arrived is how many have published in an operation of many ranks, by its
	// cell: {number 32, ranks 32}.
	arrived [Cells]atomic.Uint64
	// left is how many ranks use the memory no more, ranks whose it is: of a board
	// in a block.
	left  atomic.Uint32
	ranks atomic.Uint32
	_     [linePair - lineBytes - 24 - 8*Cells]byte
}

// rankLines is what a rank tells about itself. It alone writes it, but for
// asleep and waiting, which whoever wakes it takes away, and left of one that has
// died.
type rankLines struct {
	// done: this rank uses no cell of this number or below any more.
	done   atomic.Uint32
	asleep atomic.Uint32
	voted  atomic.Uint32 // votedHere, votedReads
	// elsewhere is the last call of which it waited long for messages.
	elsewhere atomic.Uint32
	proof     [2]uint64 // what SingleCopy.Reach needs; written before voted
	// left: this rank uses the memory no more, or has died.
	left    atomic.Uint32
	waiting atomic.Uint32 // as asleep, over rings
	// bell is what Sharer.NamedBell needs; written before voted.
	bell  [2]uint64
	_     [lineBytes - 56]byte
	cpu   atomic.Uint32 // 1 + the number of its processor; 0: unknown
	claim uint32        // collmem.Claim's
	_     [linePair - lineBytes - 8]byte
}

// cell is where a rank publishes once: a word, which is written last, and a payload,
// which stands behind the line if it is longer than inline.
type cell struct {
	word   atomic.Uint64
	inline [inlineBytes]byte
}

// progress is how many bytes of the result that a scan's cell names are
// there. It belongs to one whose payload is behind it.
func (s *cell) progress() *atomic.Int64 {
	return (*atomic.Int64)(unsafe.Pointer(&s.inline))
}

const (
	_ = uint(unsafe.Sizeof(headLines{}) - linePair)
	_ = uint(unsafe.Sizeof(rankLines{}) - linePair)
	_ = -uint(unsafe.Offsetof(rankLines{}.claim) - collmem.ClaimOff)
	_ = uint(unsafe.Sizeof(cell{}) - lineBytes)
	_ = -uint(unsafe.Sizeof(cell{}) % lineBytes)
	_ = -uint(unsafe.Offsetof(cell{}.inline) % 8) // for progress
)

func viewHead(m []byte) *headLines { return (*headLines)(unsafe.Pointer(&m[0])) }
func viewRanks(m []byte) []rankLines {
	return unsafe.Slice((*rankLines)(unsafe.Pointer(&m[0])), len(m)/linePair)
}

func viewRank(m []byte) *rankLines { return &viewRanks(m[:linePair])[0] }

func (b *Board) view(i place) *cell { return (*cell)(unsafe.Pointer(&b.cells[i.at])) }

// address is where a byte slice begins, for reduction kernels.
func address(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
