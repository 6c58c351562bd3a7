// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"encoding/binary"
	"fmt"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/control/collmem"
	"gompi/internal/host/mem"
	"gompi/transport"
)

// relay is a Reduce or Allreduce of two ranks whose data go through memory of the area,
// piece by piece. Each rank hands the other the operand for the other's half of the vector,
// reduces its own half in place of the operand, and hands over the result where it is
// wanted. No rank reads the other's memory, and a far rank writes with non-temporal stores.
// docs/design/038-shm-collective-policies.md.
//
// Both ranks compute the positions of what a rank writes: lead operands, then results and
// operands in turn.
type relay struct {
	// Lines that this rank has written, and lines of the other rank that it has taken,
	// since the area was made.
	wrote, took uint32
	known       bool  // the other rank has memory for its pieces
	asked       bool  // this rank has asked for it
	bytes       int64 // of earlier large reductions

	pieces  int // of a half
	lead    int // operands before the first result
	written int // pieces of this operation
	taken   int
	reduced int // of this rank's half
	elems   int64
	in      []byte
	acc     []byte // a result on its way to a far rank
}

const (
	relayLines = collmem.RelayRoom / lineBytes
	relayPiece = 64 << 10
	relayLead  = 2
	// A half is cut in two at least if each part has relayLeast bytes.
	relayLeast = 4 << 10
	// baseAt is where the line of a cell's word has the position from which its rank
	// writes, with mayRelay; 0 means that the rank cannot relay.
	baseAt   = 16
	mayRelay = 1 << 32
)

// relayAfter is how many bytes of large reductions an area sees before it gets memory for
// their pieces. That memory costs as much as these bytes save.
const relayAfter = 4 << 20

// WantsRelays reports, once, that it is time to ask for memory for pieces, and that this
// call would be faster with it.
func (b *Area) WantsRelays(a *Call) bool {
	if op := a.Args.Op; b.size != 2 || b.relay.asked || op != collectives.OpReduce && op != collectives.OpAllreduce {
		return false
	}
	b.relay.bytes += a.Args.Count * a.Unit
	b.relay.asked = b.relay.bytes > relayAfter
	return b.relay.asked
}

// SetRelays gives an area of two ranks the memory for both ranks' pieces. This rank can use
// its own part.
func (b *Area) SetRelays(mem []byte) {
	for r := range b.relays {
		b.relays[r] = mem[r*collmem.RelayBytes:][:collmem.RelayBytes]
	}
	viewWord(b.relays[b.rank]).Store(0)
}

// offerRelay publishes whether this rank can relay the operation.
func (b *Area) offerRelay(o *operation, i cellRef) {
	base := uint64(0)
	if b.single.relays {
		base = mayRelay | uint64(b.relay.wrote)
	}
	binary.NativeEndian.PutUint64(b.view(i).inline[baseAt:], base)
}

// relayed reports whether both ranks can relay; the other one has published. If so the
// operation continues as a relay.
func (b *Area) relayed(o *operation) bool {
	cell := b.view(b.cell(1-b.rank, o.seq))
	base := binary.NativeEndian.Uint64(cell.inline[baseAt:])
	b.relay.known = base != 0
	if !b.single.relays || base == 0 {
		return false
	}
	if binary.NativeEndian.Uint64(cell.inline[lengthAt:]) != uint64(o.bytes) { // the word has the low bits
		b.mismatch(o, 1-b.rank, o.word)
		return true
	}
	x := &b.relay
	o.protocol = x
	x.took = uint32(base)
	x.written, x.taken, x.reduced = 0, 0, 0
	x.in, x.elems = b.single.in, int64(len(b.single.in))/o.unit
	half := (x.elems + 1) / 2 * o.unit
	x.pieces = int((half + relayPiece - 1) / relayPiece)
	if x.pieces == 1 && half >= 2*relayLeast {
		x.pieces = 2
	}
	x.lead = min(relayLead, x.pieces)
	x.tell(b)
	return true
}

// tell publishes how far this rank is.
func (x *relay) tell(b *Area) {
	viewWord(b.relays[b.rank]).Store(uint64(x.wrote)<<32 | uint64(x.took))
}

// other returns how many lines the other rank has written, and how many of this rank's
// lines it has taken.
func (x *relay) other(b *Area) (wrote, took uint32) {
	w := viewWord(b.relays[1-b.rank]).Load()
	return uint32(w >> 32), uint32(w)
}

// place returns the n bytes of a piece that begins at a line or later, and the line after
// them.
func (x *relay) place(b *Area, rank int, line uint32, n int64) (p []byte, next uint32) {
	lines := uint32((n + lineBytes - 1) / lineBytes)
	if line%relayLines+lines > relayLines {
		line += relayLines - line%relayLines
	}
	return b.relays[rank][collmem.BlockAlign+int64(line%relayLines)*lineBytes:][:n:n], line + lines
}

// keeps reports whether a rank wants the results of both halves.
func (x *relay) keeps(b *Area, o *operation, rank int) bool {
	return o.op == collectives.OpAllreduce || rank == b.single.root
}

// direct reports whether results of this rank's half go to their final place at once.
func (x *relay) direct(b *Area, o *operation) bool {
	return x.keeps(b, o, b.rank) && o.to.Bytes() == 0
}

// count returns how many pieces a rank writes.
func (x *relay) count(b *Area, o *operation, rank int) int {
	if x.keeps(b, o, 1-rank) {
		return 2 * x.pieces
	}
	return x.pieces
}

// at returns what a rank with count pieces writes as the k-th: its index, and whether it is
// a result or an operand.
func (x *relay) at(count, k int) (i int, result bool) {
	if k -= x.lead; count == x.pieces || k < 0 {
		return k + x.lead, false
	}
	if turns := 2 * (x.pieces - x.lead); k >= turns {
		return k - turns/2, true
	}
	if k%2 == 0 {
		return k / 2, true
	}
	return x.lead + k/2, false
}

// part returns where piece i of a rank's half lies in the vector, in bytes.
func (x *relay) part(o *operation, rank, i int) (at, n int64) {
	lo, hi := x.elems*int64(rank)/2, x.elems*int64(rank+1)/2
	from, to := lo+(hi-lo)*int64(i)/int64(x.pieces), lo+(hi-lo)*int64(i+1)/int64(x.pieces)
	return from * o.unit, (to - from) * o.unit
}

func (x *relay) step(b *Area, o *operation) (done bool) {
	o.moved = false
	mine, its := x.count(b, o, b.rank), x.count(b, o, 1-b.rank)
	for copied := int64(0); copied < transport.MaxRead; {
		n, some := x.write(b, o, mine)
		if !some {
			n, some = x.take(b, o, mine, its)
		}
		if o.fault != nil {
			return true
		}
		if !some {
			if x.written < mine || x.taken < its {
				return false
			}
			b.finished = o.seq
			b.Tell()
			o.told = true
			return true
		}
		copied += n
	}
	o.moved = true
	return false
}

// write writes this rank's next piece, if it is ready and there is room.
func (x *relay) write(b *Area, o *operation, mine int) (n int64, some bool) {
	if x.written == mine {
		return 0, false
	}
	i, result := x.at(mine, x.written)
	if result && i >= x.reduced {
		return 0, false
	}
	var p []byte
	whose := 1 - b.rank
	if result {
		whose = b.rank
	}
	at, n := x.part(o, whose, i)
	switch {
	case !result:
		p = x.in[at:][:n]
	case x.direct(b, o): // else it is there already
		p = o.out[at:][:n]
	}
	to, next, room := x.room(b, n)
	if !room {
		return 0, false
	}
	if p != nil {
		x.put(b, o, to, p)
	}
	x.wrote = next
	x.written++
	x.tell(b)
	o.told = true
	return n, true
}

// room returns the place of this rank's next piece and the line after it, if the other rank
// has taken what was there.
func (x *relay) room(b *Area, n int64) (to []byte, next uint32, room bool) {
	to, next = x.place(b, b.rank, x.wrote, n)
	_, took := x.other(b)
	return to, next, next-took <= relayLines
}

// put writes a piece.
func (x *relay) put(b *Area, o *operation, to, p []byte) {
	// This line belongs to the rank's cell: the other rank looks there for each piece.
	if i := b.cell(b.rank, o.seq); b.far(b.cells[i.at+lineBytes-8:][:8]) {
		mem.Stream(to, p)
	} else {
		mem.Copy(to, p)
	}
}

// take takes the other rank's next piece, if it is there.
func (x *relay) take(b *Area, o *operation, mine, its int) (n int64, some bool) {
	if x.taken == its {
		return 0, false
	}
	i, result := x.at(its, x.taken)
	whose := b.rank
	if result {
		whose = 1 - b.rank
	}
	at, n := x.part(o, whose, i)
	p, next := x.place(b, 1-b.rank, x.took, n)
	if wrote, _ := x.other(b); int32(wrote-next) < 0 {
		x.there(b, o)
		return 0, false
	}
	if result {
		o.put(at, p)
	} else if !x.reduce(b, o, mine, at, p) {
		return 0, false
	}
	if !x.there(b, o) {
		return 0, false
	}
	x.took = next
	x.taken++
	x.tell(b)
	o.told = true
	return n, true
}

// reduce reduces a piece of this rank's half; p is the other operand. False means that
// there is no room for its result yet.
func (x *relay) reduce(b *Area, o *operation, mine int, at int64, p []byte) bool {
	n := int64(len(p))
	low, high := x.in[at:][:n], p
	if b.rank == 1 {
		low, high = high, low
	}
	var to, past []byte
	switch {
	case x.direct(b, o):
		to = o.out[at:][:n]
	case mine == x.pieces:
		to = b.scratch(&x.acc, n)
	default:
		_, result := x.at(mine, x.written)
		var room bool
		if to, _, room = x.room(b, n); !result || !room {
			return false
		}
		if b.distance.Far() {
			past, to = to, b.scratch(&x.acc, n)
		}
	}
	if n > 0 {
		o.kernel(address(to), address(low), address(high), n/o.unit)
	}
	if past != nil {
		mem.Stream(past, to)
	}
	if o.to.Bytes() > 0 && x.keeps(b, o, b.rank) {
		o.to.Unpack(at, to)
	}
	x.reduced++
	return true
}

// there reports whether the other rank is still in the operation. After it has given up, it
// may write something else.
func (x *relay) there(b *Area, o *operation) bool {
	w := b.view(b.cell(1-b.rank, o.seq)).word.Load()
	if w != o.word && w != o.word&^kindGone|kindGone { // a rank that has given up, or the control plane, says why
		o.fault = &fault.Fault{Class: fault.Unreachable, Peer: int32(1 - b.rank), Err: fmt.Errorf("%w: cell %#x became %#x", transport.ErrProtocol, o.word, w)}
	}
	return w == o.word
}

func (x *relay) awaits(b *Area, o *operation, rank int) bool {
	return Later(o.seq, b.ranks[rank].done.Load())
}

func (x *relay) end(b *Area, o *operation, failed bool) {
	b.endRead(o, failed)
	x.in = nil
}
