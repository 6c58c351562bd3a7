// SPDX-License-Identifier: Apache-2.0

package changepage

// unsafe: the words of a page are used by several processes through atomics at
// fixed places of shared memory.

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

const (
	lineBytes = 64
	linePair  = 128 // two lines, which are fetched together
)

// headLines begin a page.
type headLines struct {
	// announcement is {change 62, phase 2}: what every Check reads.
	announcement atomic.Uint64
	_            [linePair - 8]byte
	// verdict is {change 62, state 2}.
	decision atomic.Uint64
	// agreed is {change 20, iteration + 1 44}; without an iteration while it is
	// not known.
	agreed atomic.Uint64
	// votes is {change 32, how many are missing 32}.
	votes atomic.Uint64
	// past is {change 16, 1 for each of those before it that is committed 48}, the
	// latest lowest.
	past atomic.Uint64
	_    [lineBytes - 32]byte
	// shown and hidden are {change 20, call 44}: the call of Query that is the
	// first to see the change, and the first that does not any more; without a
	// call while it is not known.
	firstCall, endCall atomic.Uint64
	// side is where calls of Query that begin are counted.
	side atomic.Uint64
	// waits is the change whose last calls the agent waits for; 0: none.
	awaited atomic.Uint64
	// body is {change 32, bytes of what members are handed with it 32}.
	body atomic.Uint64
	// dropped is not 0 when nothing follows on the page any more.
	dropped atomic.Uint64
	_       [lineBytes - 48]byte
}

// memberLines is what a member tells. It alone writes it, but for the mark in calls,
// and what the agent swaps in claim and voted.
type memberLines struct {
	// iteration is that of the last Check + 1; 0: none.
	iteration atomic.Uint64
	nanos     atomic.Uint64 // what an iteration takes
	bytes     atomic.Uint64 // what has come of the data that the member moves
	delivered atomic.Uint64 // the last change that the member was handed
	// claim is the last change of which the member, or the agent in its place, has
	// taken what it is handed.
	claim atomic.Uint64
	left  atomic.Uint64 // not 0: the member has gone on, and touches the page no more
	// voted is the last change on which the member has voted, or the agent in its place,
	// or on which it has no vote.
	voted atomic.Uint64
	// reports is {change 32, how often the member has said that it works on it 32}.
	reports atomic.Uint64
	// calls is {calls of Query 62, mark 2}.
	calls atomic.Uint64
	// looking is how many of these calls have not ended, by the side on which they
	// began.
	active [2]atomic.Int64
	_      [lineBytes - 24]byte
}

const (
	_ = uint(unsafe.Sizeof(headLines{}) - 2*linePair)
	_ = uint(2*linePair - unsafe.Sizeof(headLines{}))
	_ = uint(unsafe.Sizeof(memberLines{}) - linePair)
	_ = uint(linePair - unsafe.Sizeof(memberLines{}))
)

// Bytes is how much memory the page of a set has with so many members on the host.
func Bytes(members int) int { return 2*linePair + members*linePair + 8*bodyWords(members) }

// Page is the page of a set on one host. A value of Page is a view, to be copied.
type Page struct {
	head    *headLines
	members []memberLines
	body    []atomic.Uint64
}

// View is the page in memory that was zero when it was made into one. The memory
// must begin at a multiple of 8 and stay while the view is used.
func View(memory []byte, members int) (Page, error) {
	if members < 1 || len(memory) < Bytes(members) || uintptr(unsafe.Pointer(&memory[0]))%8 != 0 {
		return Page{}, fmt.Errorf("a page of %d members in %d bytes", members, len(memory))
	}
	return Page{
		head:    (*headLines)(unsafe.Pointer(&memory[0])),
		members: unsafe.Slice((*memberLines)(unsafe.Pointer(&memory[2*linePair])), members),
		body:    unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&memory[(2+members)*linePair])), bodyWords(members)),
	}, nil
}
