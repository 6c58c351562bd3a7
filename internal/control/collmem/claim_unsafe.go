// SPDX-License-Identifier: Apache-2.0

package collmem

// unsafe: all ranks of a host, and the agent, use words of shared memory through atomics at fixed
// offsets.

import (
	"sync/atomic"
	"unsafe"
)

// ClaimOff is the offset of a rank's claim in the lines of that rank.
const ClaimOff = LineBytes + 4

// States of a claim. The agent may offer preallocated memory to all ranks of a set. Each rank
// claims it in one word before it touches anything else. The agent withdraws the offer from
// ranks that have not claimed it. The word also holds the set of the offer, so a slow rank does
// not mistake a later offer of the same memory, for another set, for its own.
const (
	offered = 1 + iota
	claimed
	withdrawn
)

// claimWord returns the word of a claim. It differs from small numbers, which an earlier use of
// the memory may have left there.
func claimWord(set, state uint32) uint32 { return set*0x9e3779b1<<2 | state }

// claim returns the claim of a rank.
func claim(mem []byte, rank int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&mem[LinePair*(1+rank)+ClaimOff : LinePair*(2+rank)][0]))
}

// ClaimsBytes returns the size of the part of the memory that holds the claims.
func ClaimsBytes(ranks int) int { return LinePair * (1 + ranks) }

// Offer offers memory to the ranks of a set. The agent calls it before any of them knows the
// memory.
func Offer(mem []byte, ranks int, set uint32) {
	for r := range ranks {
		claim(mem, r).Store(claimWord(set, offered))
	}
}

// Claim starts the use of offered memory. It returns false if the offer was withdrawn, or
// claimed before.
func Claim(mem []byte, rank int, set uint32) bool {
	return claim(mem, rank).CompareAndSwap(claimWord(set, offered), claimWord(set, claimed))
}

// Withdraw ends the offer to a rank, which then never uses the memory. It returns false if the
// rank has claimed the memory.
func Withdraw(mem []byte, rank int, set uint32) bool {
	return claim(mem, rank).CompareAndSwap(claimWord(set, offered), claimWord(set, withdrawn))
}
