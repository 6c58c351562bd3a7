// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"encoding/binary"
	"fmt"

	"gompi/collectives"
	"gompi/internal/base/fault"
)

// Ranks whose calls of one number do not go together find out where that costs
// nothing: in what they have published, and, when they are about to sleep, that
// one of them is on the board and another sends messages.

// lengthAt is where in the line of a cell's word stands how much can be read
// elsewhere, of which the word tells the low bits only.
const lengthAt = 8

// tellLength writes that.
func (b *Board) tellLength(o *operation, i place) {
	binary.NativeEndian.PutUint64(b.view(i).inline[lengthAt:], uint64(o.bytes))
}

// mismatch is the fault of a cell that does not say what is expected.
func (b *Board) mismatch(o *operation, rank int, w uint64) {
	if w&kindGone == kindGone {
		return // why, it or the control plane tells
	}
	op, root := opOf(w), int(w>>aboveKind%toldRoots)
	f := &fault.Fault{Class: fault.Mismatch, Peer: int32(rank), Got: -1, Want: -1}
	switch mine := int(o.word >> aboveKind % toldRoots); {
	case op != o.op:
		f.Err = fmt.Errorf("collective call %d is %v here and %v there", o.seq, o.op, op)
	case root != mine && b.size > toldRoots:
		f.Err = fmt.Errorf("collective call %d has one root here and another there", o.seq)
	case root != mine:
		f.Err = fmt.Errorf("collective call %d has root %d here and root %d there", o.seq, mine, root)
	default:
		f.Err = fmt.Errorf("collective call %d", o.seq)
		f.Got, f.Want = bytesOf(w), o.bytes
		if w&kindGone == kindRegion {
			whole := int64(binary.NativeEndian.Uint64(b.view(b.cell(rank, o.seq)).inline[lengthAt:]))
			if f.Got = -1; whole >= 0 && cellWord(0, 0, 0, 0, whole) == uint64(bytesOf(w)) {
				f.Got = whole
			}
		}
	}
	o.fault = f
}

// Stray is the fault of this operation if a rank makes its call by messages, of
// which came is one, -1: none has come. parts: a call has two numbers.
func (b *Board) Stray(came int, parts bool) *fault.Fault {
	o := &b.op
	if o.op == collectives.OpGatherv {
		return nil // a message may follow
	}
	rank := came
	for i := range b.ranks {
		r := &b.ranks[i]
		if at := r.elsewhere.Load(); i != b.rank && (at == o.seq || parts && at != 0 && (at-1)/2 == (o.seq-1)/2) {
			rank = i
		}
	}
	if rank < 0 {
		return nil
	}
	return &fault.Fault{Class: fault.Mismatch, Peer: int32(rank), Got: -1, Want: -1,
		Err: fmt.Errorf("collective call %d is %v through shared memory here, and goes by messages there", o.seq, o.op)}
}

// TellElsewhere says that this rank waits for messages in a call. It wakes nobody.
func (b *Board) TellElsewhere(seq uint32) { b.ranks[b.rank].elsewhere.Store(seq) }

// Strayed is the fault of a call by messages that another rank makes here.
func (b *Board) Strayed(seq uint32) *fault.Fault {
	for i := range b.ranks {
		w := b.view(b.cell(i, seq)).word.Load()
		if i == b.rank || uint32(w>>32) != seq {
			continue
		}
		return &fault.Fault{Class: fault.Mismatch, Peer: int32(i), Got: -1, Want: -1,
			Err: fmt.Errorf("collective call %d goes by messages here, and is %v through shared memory there", seq, opOf(w))}
	}
	return nil
}
