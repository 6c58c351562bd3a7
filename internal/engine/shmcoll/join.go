// SPDX-License-Identifier: Apache-2.0

package shmcoll

import "gompi/internal/control/collmem"

// What ranks decide in the memory itself, before the first operation: whether all
// have it, and whether all can read each other's. docs/design/012-shared-memory-collectives.md.

// What a rank has voted for, the later with the former.
const (
	VotedHere  = 1
	VotedReads = 2
)

// SharedRoom is the longest payload of operations whose lengths all ranks know, on
// a board of so many.
func SharedRoom(ranks int) int {
	if ranks == 2 {
		return collmem.Room(ranks)
	}
	return min(collmem.Room(ranks), sharedRoom)
}

// Vote votes for the memory, with what proves to others that they can read this
// rank's, and what leads them to its bell. It wakes nobody.
func (b *Board) Vote(proof, bell [2]uint64) {
	r := &b.ranks[b.rank]
	r.proof, r.bell = proof, bell
	r.voted.Store(VotedHere)
	b.head.votes.Add(1)
}

// AllVoted reports whether all ranks have the memory.
func (b *Board) AllVoted() bool { return int64(b.head.votes.Load()) >= int64(b.size) }

// WakeVoters wakes those that wait for the votes of all: all ranks that may sleep
// over rings, and of the others those beside this one in the tree.
func (b *Board) WakeVoters() {
	b.WakeNear()
	b.wakeWaiting(plainAsleep)
}

// Voted is what a rank has voted for.
func (b *Board) Voted(rank int) uint32 { return b.ranks[rank].voted.Load() }

// Proof is what a rank that has voted proves with that its memory can be read.
func (b *Board) Proof(rank int) [2]uint64 { return b.ranks[rank].proof }

// Bell is what leads to a rank's bell; zero: nothing, or it has not voted.
func (b *Board) Bell(rank int) (name [2]uint64) {
	if b.Voted(rank) >= VotedHere {
		name = b.ranks[rank].bell
	}
	return name
}

// VoteReads tells whether this rank can read the memory of all.
func (b *Board) VoteReads(yes bool) {
	if !yes {
		b.head.noReads.Store(1)
		return
	}
	b.ranks[b.rank].voted.Store(VotedReads)
	b.head.readers.Add(1)
}

// ReadsVoted is the outcome so far: all can, or one cannot.
func (b *Board) ReadsVoted() (all, no bool) {
	return int64(b.head.readers.Load()) >= int64(b.size), b.head.noReads.Load() != 0
}

// Read lets operations copy from the ranks' memory, which all of them can.
func (b *Board) Read(from Regions) { b.regions = from }

// TellCentral says that ranks share processors, so that operations of many go
// without levels. Rank 0 does before it votes, or who gives a block out.
func (b *Board) TellCentral() { b.head.oversubscribed.Store(1) }

// Decided begins the use of a board that all ranks have.
func (b *Board) Decided() { b.tree.central = b.head.oversubscribed.Load() != 0 }

// BlockRanks is for how many ranks a block is, by the word of who has given it out;
// 0: that is undecided.
func (b *Board) BlockRanks() int64 { return int64(b.head.ranks.Load()) }
