// SPDX-License-Identifier: Apache-2.0

package shmcoll

import "gompi/internal/control/collmem"

// Before the first operation the ranks decide in the memory itself whether all have it, and
// whether all can read each other's memory. docs/design/012-shared-memory-collectives.md.

// What a rank has voted for. The second vote includes the first.
const (
	VotedHere  = 1
	VotedReads = 2
)

// SharedRoom returns the longest payload of operations whose lengths all ranks know.
func SharedRoom(ranks int) int {
	if ranks == 2 {
		return collmem.Room(ranks)
	}
	return min(collmem.Room(ranks), sharedRoom)
}

// Vote votes for the memory. proof lets others read this rank's memory, bell names its
// bell. Vote wakes no rank.
func (b *Area) Vote(proof, bell [2]uint64) {
	r := &b.ranks[b.rank]
	r.proof, r.bell = proof, bell
	r.voted.Store(VotedHere)
	b.head.votes.Add(1)
}

// AllVoted reports whether all ranks have the memory.
func (b *Area) AllVoted() bool { return int64(b.head.votes.Load()) >= int64(b.size) }

// WakeVoters wakes ranks that wait for all votes: all that may sleep in ring operations,
// and this rank's neighbours in the tree.
func (b *Area) WakeVoters() {
	b.WakeNear()
	b.wakeWaiting(plainAsleep)
}

// Voted returns what a rank has voted for.
func (b *Area) Voted(rank int) uint32 { return b.ranks[rank].voted.Load() }

// Proof returns the proof of a rank that has voted: with it its memory can be read.
func (b *Area) Proof(rank int) [2]uint64 { return b.ranks[rank].proof }

// Bell returns the name of a rank's bell. Zero means that it has none, or has not voted.
func (b *Area) Bell(rank int) (name [2]uint64) {
	if b.Voted(rank) >= VotedHere {
		name = b.ranks[rank].bell
	}
	return name
}

// VoteReads publishes whether this rank can read the memory of all ranks.
func (b *Area) VoteReads(yes bool) {
	if !yes {
		b.head.noReads.Store(1)
		return
	}
	b.ranks[b.rank].voted.Store(VotedReads)
	b.head.readers.Add(1)
}

// ReadsVoted returns the outcome so far: all can, or one cannot.
func (b *Area) ReadsVoted() (all, no bool) {
	return int64(b.head.readers.Load()) >= int64(b.size), b.head.noReads.Load() != 0
}

// Read lets operations copy from the ranks' memory. All ranks must be able to.
func (b *Area) Read(from Regions) { b.regions = from }

// TellCentral publishes that ranks share processors, so that operations of many ranks use
// no tree. Rank 0 must call it before it votes, or the rank that allocates the block.
func (b *Area) TellCentral() { b.head.oversubscribed.Store(1) }

// Decided begins the use of an area that all ranks have.
func (b *Area) Decided() { b.tree.central = b.head.oversubscribed.Load() != 0 }

// BlockRanks returns the number of ranks of a block, as its owner has written it; 0 means
// undecided.
func (b *Area) BlockRanks() int64 { return int64(b.head.ranks.Load()) }
