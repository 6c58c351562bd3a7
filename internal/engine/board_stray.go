// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"fmt"

	"gompi/collectives"
	"gompi/internal/fault"
	"gompi/internal/match"
	"gompi/internal/wire"
)

// Ranks whose calls of one number do not go together find out where that costs
// nothing: in what they have published, and, when they are about to sleep, that
// one of them is on the board and another sends messages.

// lengthAt is where in the line of a publication's word stands how much can be
// read elsewhere, of which the word tells the low bits only.
const lengthAt = 8

// tellLength writes that.
func (b *board) tellLength(o *boardOp, slot int) {
	binary.NativeEndian.PutUint64(b.slots[slot].inline[lengthAt:], uint64(o.bytes))
}

// mismatch is the fault of a publication that is not the one expected.
func (b *board) mismatch(o *boardOp, rank int, w uint64) {
	if w&kindGone == kindGone {
		return // why, it or the control plane tells
	}
	op, root := collectives.Op(w>>27&(1<<5-1)), int(w>>aboveKind%toldRoots)
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
		f.Got, f.Want = boardBytesOf(w), o.bytes
		if w&kindGone == kindKeys {
			whole := int64(binary.NativeEndian.Uint64(b.slots[b.slot(rank, o.seq)].inline[lengthAt:]))
			if f.Got = -1; whole >= 0 && boardWord(0, 0, 0, 0, whole) == uint64(boardBytesOf(w)) {
				f.Got = whole
			}
		}
	}
	o.fault = f
}

// stray is the fault of an operation on the board that this process is about to
// sleep over while another rank makes the call by messages.
func (e *Engine) stray(k *coll) *fault.Fault {
	c, b, o := k.ctx, k.ctx.board, k.board
	if o.op == collectives.OpGatherv {
		return nil // a message may follow
	}
	rank := -1
	if e.table.ArrivedLen() > 0 {
		if a := e.table.Peek(c.keys[wire.PlaneColl].With(match.Any, k.tag)); a != nil {
			rank = int(a.Key.Source())
		}
	}
	for i, r := range b.ranks {
		if at := r.elsewhere.Load(); i != b.rank && (at == o.seq || c.partOf(at, o.seq)) {
			rank = i
		}
	}
	if rank < 0 {
		return nil
	}
	return &fault.Fault{Class: fault.Mismatch, Peer: int32(rank), Got: -1, Want: -1,
		Err: fmt.Errorf("collective call %d is %v through shared memory here, and goes by messages there", o.seq, o.op)}
}

// strayed is that of a call by messages, which this process tells on the board.
func (e *Engine) strayed(k *coll) *fault.Fault {
	c := k.ctx
	if c.inside == nil || c.inside.coll != k || c.tag != k.tag || k.tag < c.shareFrom {
		return nil
	}
	if c.node != nil {
		c.node.strays(e, k.tag)
		return nil
	}
	switch c.boardState { // somebody may be waiting for this rank's vote
	case boardOpen:
		e.askBoard(c)
	case boardVoted:
		e.countVotes(c)
	}
	b := c.board
	if b == nil {
		b = c.voted
	}
	if b == nil || k.alg == b.direct {
		return nil
	}
	seq := boardSeq(k.tag)
	b.ranks[b.rank].elsewhere.Store(seq)
	e.rouse(c, b)
	if b != c.board {
		return nil // nobody publishes there before all have voted
	}
	for i := range b.ranks {
		w := b.slots[b.slot(i, seq)].word.Load()
		if i == b.rank || uint32(w>>32) != seq {
			continue
		}
		return &fault.Fault{Class: fault.Mismatch, Peer: int32(i), Got: -1, Want: -1,
			Err: fmt.Errorf("collective call %d goes by messages here, and is %v through shared memory there", seq, collectives.Op(w>>27&(1<<5-1)))}
	}
	return nil
}
