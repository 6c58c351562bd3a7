// SPDX-License-Identifier: Apache-2.0

package shmcoll

// Two ranks that publish short data in consecutive operations in which each waits for the
// other use one line, with two slots of each rank. The rank that finds there what it waits
// for has the line already. It publishes in the next operation before the line is taken
// away again. docs/design/038-shm-collective-policies.md.
//
//	+0   rank 0: operations of even numbers {word 8, payload 8}, of odd ones
//	+32  rank 1: likewise
const (
	duplexSlots = 2
	duplexBytes = 8 // of a payload
	duplexSlot  = 8 + duplexBytes
	// asideEvery is how many fruitless looks for a word lead to one look at the other
	// place.
	asideEvery = 16
)

// slot returns where a rank publishes operation seq in the duplex line. The last operation
// that used the slot has ended on both ranks: see inDuplex.
func (b *Area) slot(rank int, seq uint32) cellRef {
	n := int(seq % duplexSlots)
	return cellRef{b.duplex + duplexSlots*duplexSlot*rank + duplexSlot*n, rankCells + n}
}

// inDuplex reports whether the words of an operation use the duplex line: it must directly
// follow another operation in which all wait for all. Both ranks know that.
func (b *Area) inDuplex(o *operation) bool {
	return b.size == 2 && o.all && o.follows && o.bytes <= duplexBytes
}

// home returns where a rank publishes in the operation.
func (b *Area) home(o *operation, rank int) cellRef {
	if o.duplex {
		return b.slot(rank, o.seq)
	}
	return b.cell(rank, o.seq)
}

// aside looks now and then at the other place for the word of an operation of two ranks:
// the other rank may have made another call before, or makes another one now.
func (b *Area) aside(o *operation) (at cellRef, word uint64, found bool) {
	if o.looks++; o.looks%asideEvery != 0 && !o.sleepy {
		return at, 0, false
	}
	if at = b.slot(o.next, o.seq); o.duplex {
		at = b.cell(o.next, o.seq)
	}
	word = b.view(at).word.Load()
	return at, word, uint32(word>>seqShift) == o.seq
}

// posted reports whether a rank has published seq.
func (b *Area) posted(rank int, seq uint32) bool {
	return uint32(b.view(b.cell(rank, seq)).word.Load()>>seqShift) == seq ||
		b.size == 2 && uint32(b.view(b.slot(rank, seq)).word.Load()>>seqShift) == seq
}
