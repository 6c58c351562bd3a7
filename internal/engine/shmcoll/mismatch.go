// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"encoding/binary"
	"fmt"

	"gompi/collectives"
	"gompi/internal/base/fault"
)

// Calls of one number that do not match are detected where that costs nothing: in published
// words, and before a rank sleeps. A rank about to sleep checks whether one rank uses the
// area while another sends messages.

// lengthAt is where the line of a cell's word has the full length of data that are read
// elsewhere. The word has only the low bits.
const lengthAt = 8

// tellLength writes that length.
func (b *Area) tellLength(o *operation, i cellRef) {
	binary.NativeEndian.PutUint64(b.view(i).inline[lengthAt:], uint64(o.bytes))
}

// mismatch returns the fault of a cell that does not hold what is expected.
func (b *Area) mismatch(o *operation, rank int, w uint64) {
	if w&kindGone == kindGone {
		return // that rank, or the control plane, says why
	}
	op, root := opOf(w), int(w>>rootShift%rootsInWord)
	f := &fault.Fault{Class: fault.Mismatch, Peer: int32(rank), Got: -1, Want: -1}
	switch mine := int(o.word >> rootShift % rootsInWord); {
	case op != o.op:
		f.Err = fmt.Errorf("collective call %d is %v here and %v there", o.seq, o.op, op)
	case root != mine && b.size > rootsInWord:
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

// Stray returns the fault of this operation if a rank makes its call by messages. came is a
// rank whose message has come, or -1. parts says that a call has two numbers.
func (b *Area) Stray(came int, parts bool) *fault.Fault {
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

// TellElsewhere publishes that this rank waits for messages in a call. It wakes no rank.
func (b *Area) TellElsewhere(seq uint32) { b.ranks[b.rank].elsewhere.Store(seq) }

// Strayed returns the fault of a call by messages that another rank makes in the area.
func (b *Area) Strayed(seq uint32) *fault.Fault {
	for i := range b.ranks {
		w := b.view(b.cell(i, seq)).word.Load()
		if i == b.rank || uint32(w>>seqShift) != seq {
			continue
		}
		return &fault.Fault{Class: fault.Mismatch, Peer: int32(i), Got: -1, Want: -1,
			Err: fmt.Errorf("collective call %d goes by messages here, and is %v through shared memory there", seq, opOf(w))}
	}
	return nil
}
