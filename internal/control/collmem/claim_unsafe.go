// SPDX-License-Identifier: Apache-2.0

package collmem

// unsafe: the words of a board are used by all ranks of a host, and the agent, through
// atomics at fixed places of shared memory.

import (
	"sync/atomic"
	"unsafe"
)

// ClaimOff is where in the lines of a rank its claim stands.
const ClaimOff = LineBytes + 4

// Of memory that the agent has given to all ranks unasked each says in one word that
// it uses it, before it touches anything else. The agent takes it back from those who
// have not. The word has the set to which it was given: who was given the same place
// with another one, and was slow to look, does not take it for that.
const (
	offered = 1 + iota
	claimed
	withdrawn
)

// wordOf is like no small number, which may stand there of other uses.
func claimWord(set, state uint32) uint32 { return set*0x9e3779b1<<2 | state }

func claim(mem []byte, rank int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&mem[LinePair*(1+rank)+ClaimOff : LinePair*(2+rank)][0]))
}

// ClaimsBytes is how much of the memory has the claims of so many ranks.
func ClaimsBytes(ranks int) int { return LinePair * (1 + ranks) }

// Give makes memory that of a set, before any of its ranks is told.
func Offer(mem []byte, ranks int, set uint32) {
	for r := range ranks {
		claim(mem, r).Store(claimWord(set, offered))
	}
}

// Claim begins the use of memory that was given unasked; false: it is not given any
// more, or it was claimed before.
func Claim(mem []byte, rank int, set uint32) bool {
	return claim(mem, rank).CompareAndSwap(claimWord(set, offered), claimWord(set, claimed))
}

// TakeBack ends what was given to a rank, which never uses it from then on; false: it
// uses it.
func Withdraw(mem []byte, rank int, set uint32) bool {
	return claim(mem, rank).CompareAndSwap(claimWord(set, offered), claimWord(set, withdrawn))
}
