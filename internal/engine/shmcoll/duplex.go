// SPDX-License-Identifier: Apache-2.0

package shmcoll

// What two ranks publish in operations one after the other in which each waits for the
// other stands in one line, if it is short: two slots of each. Who finds there what it
// waits for has the line already, and goes on to publish in the next operation before it
// is taken away again. docs/design/038-shm-collective-policies.md.
//
//	+0   rank 0: operations of even numbers {word 8, payload 8}, of odd ones
//	+32  rank 1: likewise
const (
	duplexSlots = 2
	duplexBytes = 8 // of a payload
	duplexSlot  = 8 + duplexBytes
	// asideEvery: in every so manyth look in vain for a word the other place is looked at.
	asideEvery = 16
)

// slot is where a rank publishes operation seq in the duplex line. The one in which it has
// stood there before is over on both ranks: see inDuplex.
func (b *Board) slot(rank int, seq uint32) place {
	n := int(seq % duplexSlots)
	return place{b.duplex + duplexSlots*duplexSlot*rank + duplexSlot*n, rankCells + n}
}

// inDuplex reports whether the words of an operation stand in the duplex line: if it comes
// directly after another one in which all wait for all, as both ranks know.
func (b *Board) inDuplex(o *operation) bool {
	return b.size == 2 && o.all && o.follows && o.bytes <= duplexBytes
}

// home is where a rank publishes in the operation.
func (b *Board) home(o *operation, rank int) place {
	if o.duplex {
		return b.slot(rank, o.seq)
	}
	return b.cell(rank, o.seq)
}

// aside looks now and then where the word of an operation of two ranks stands if the other
// one does not know of the same operation before, or makes another call.
func (b *Board) aside(o *operation) (at place, word uint64, found bool) {
	if o.looks++; o.looks%asideEvery != 0 && !o.sleepy {
		return at, 0, false
	}
	if at = b.slot(o.next, o.seq); o.duplex {
		at = b.cell(o.next, o.seq)
	}
	word = b.view(at).word.Load()
	return at, word, uint32(word>>32) == o.seq
}

// posted reports whether a rank has published seq.
func (b *Board) posted(rank int, seq uint32) bool {
	return uint32(b.view(b.cell(rank, seq)).word.Load()>>32) == seq ||
		b.size == 2 && uint32(b.view(b.slot(rank, seq)).word.Load()>>32) == seq
}
