// SPDX-License-Identifier: Apache-2.0

package shmcoll

// unsafe: all ranks of a host use the words of an area through atomics at fixed places of
// shared memory.

import (
	"sync/atomic"
	"unsafe"

	"gompi/internal/control/collmem"
)

// headLines is the head of an area: what all ranks share.
type headLines struct {
	// sleepers is the number of ranks with asleep set; stuck is the number of those with
	// stuckAsleep.
	sleepers atomic.Int32
	stuck    atomic.Int32
	waiting  atomic.Int32 // the number of ranks with waiting set
	_        [lineBytes - 12]byte
	// votes is the number of ranks that have the memory, readers the number of ranks that
	// can read all others' memory. noReads says that a rank cannot.
	votes          atomic.Uint32
	readers        atomic.Uint32
	noReads        atomic.Uint32
	oversubscribed atomic.Uint32 // rank 0 shares its processor; written before its vote
	// arrived counts the ranks that have published in an operation of many ranks, by its
	// cell: {number 32, ranks 32}.
	arrived [Cells]atomic.Uint64
	// left is the number of ranks that do not use the memory any more; ranks is the size of
	// the block's communicator. Both are of an area in a block.
	left  atomic.Uint32
	ranks atomic.Uint32
	_     [linePair - lineBytes - 24 - 8*Cells]byte
}

// rankLines is what a rank publishes about itself. Only the rank writes it, with two
// exceptions: the rank that wakes it clears asleep and waiting, and the left of a rank that
// has died is set for it.
type rankLines struct {
	// done: this rank does not use cells of this number or earlier ones any more.
	done   atomic.Uint32
	asleep atomic.Uint32
	voted  atomic.Uint32 // votedHere, votedReads
	// elsewhere is the last call in which it waited long for messages.
	elsewhere atomic.Uint32
	proof     [2]uint64 // what SingleCopy.Reach needs; written before voted
	// left: this rank does not use the memory any more, or has died.
	left    atomic.Uint32
	waiting atomic.Uint32 // as asleep, for operations in rings
	// bell is what Sharer.NamedBell needs; written before voted.
	bell  [2]uint64
	_     [lineBytes - 56]byte
	cpu   atomic.Uint32 // 1 + the number of its processor; 0: unknown
	claim uint32        // collmem.Claim's
	_     [linePair - lineBytes - 8]byte
}

// cell is where a rank publishes in one operation: a word, which is written last, and a
// payload. A payload longer than inline lies after the line.
type cell struct {
	word   atomic.Uint64
	inline [inlineBytes]byte
}

// progress counts the bytes that are complete of the result that a scan's cell names. Only
// a cell whose payload lies after the line has it.
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

func (b *Area) view(i cellRef) *cell { return (*cell)(unsafe.Pointer(&b.cells[i.at])) }

// address returns where a byte slice begins, for reduction kernels.
func address(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
