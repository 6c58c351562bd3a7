// SPDX-License-Identifier: Apache-2.0

package changepage

// unsafe: several processes use the words of a page through atomics, at fixed offsets of shared
// memory.

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

const (
	lineBytes = 64
	linePair  = 128 // two lines, which processors fetch together
)

// headLines is the beginning of a page. The comments show the bit fields of each word, the high
// ones first, with their widths.
type headLines struct {
	// announcement is {change 62, phase 2}. Every Check reads it.
	announcement atomic.Uint64
	_            [linePair - 8]byte
	// decision is {change 62, state 2}.
	decision atomic.Uint64
	// agreed is {change 20, iteration + 1 44}. The iteration is 0 while it is not known.
	agreed atomic.Uint64
	// votes is {change 32, number of missing votes 32}.
	votes atomic.Uint64
	// past is {change 16, committed 48}: a bit for each earlier change, the latest in the lowest.
	past atomic.Uint64
	_    [lineBytes - 32]byte
	// firstCall and endCall are {change 20, call 44}: the first call of Query that sees the change,
	// and the first one that does not see it any more. The call is 0 while it is not known.
	firstCall, endCall atomic.Uint64
	// side is the side on which new calls of Query are counted.
	side atomic.Uint64
	// awaited is the change whose last calls the agent waits for, or 0.
	awaited atomic.Uint64
	// body is {change 32, bytes of the body 32}.
	body atomic.Uint64
	// dropped is not 0 if nothing follows on the page any more.
	dropped atomic.Uint64
	_       [lineBytes - 48]byte
}

// memberLines is what a member records. Only the member writes it, except for the flag in
// calls, and the words claim and voted, which the agent may swap.
type memberLines struct {
	// iteration is the iteration of the last Check plus 1, or 0 before the first Check.
	iteration atomic.Uint64
	nanos     atomic.Uint64 // time of an iteration
	bytes     atomic.Uint64 // received bytes of the data that moves to the member
	delivered atomic.Uint64 // the last change that was delivered to the member
	// claim is {change 63, closed 1}: the last change whose body the member has claimed, or the
	// agent has closed.
	claim atomic.Uint64
	left  atomic.Uint64 // not 0 if the member has left the page
	// voted is the last change on which the member has voted, or the agent for it, or on which it
	// has no vote.
	voted atomic.Uint64
	// reports is {change 32, number of reports of the member 32}.
	reports atomic.Uint64
	// calls is {calls of Query 62, flag 2}.
	calls atomic.Uint64
	// active is the number of calls that have not ended, by the side on which they began.
	active [2]atomic.Int64
	_      [lineBytes - 24]byte
}

const (
	_ = uint(unsafe.Sizeof(headLines{}) - 2*linePair)
	_ = uint(2*linePair - unsafe.Sizeof(headLines{}))
	_ = uint(unsafe.Sizeof(memberLines{}) - linePair)
	_ = uint(linePair - unsafe.Sizeof(memberLines{}))
)

// Bytes returns the size of the page of a set with so many members on the host.
func Bytes(members int) int { return 2*linePair + members*linePair + 8*bodyWords(members) }

// Page is a view of the page of a set on one host. It may be copied.
type Page struct {
	head    *headLines
	members []memberLines
	body    []atomic.Uint64
}

// View returns the page in memory that was zero at first. The memory must begin at a multiple
// of 8, and must stay mapped while the view is used.
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
