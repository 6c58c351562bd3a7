// SPDX-License-Identifier: Apache-2.0

package testlab

import (
	"encoding/binary"
	"math"
)

// CollOp is a collective operation.
type CollOp uint8

// The collectives. On intercommunicators all but Scan and Exscan; where there
// is a topology also those from NeighborAllgather on.
const (
	Barrier CollOp = iota
	Bcast
	Gather
	Gatherv
	Scatter
	Scatterv
	Allgather
	Allgatherv
	Alltoall
	Alltoallv
	Alltoallw
	Reduce
	Allreduce
	ReduceScatterBlock
	ReduceScatter
	Scan
	Exscan
	NeighborAllgather
	NeighborAllgatherv
	NeighborAlltoall
	NeighborAlltoallv
	NeighborAlltoallw
	numColls
)

var collNames = [...]string{
	Barrier: "Barrier", Bcast: "Bcast", Gather: "Gather", Gatherv: "Gatherv", Scatter: "Scatter", Scatterv: "Scatterv",
	Allgather: "Allgather", Allgatherv: "Allgatherv", Alltoall: "Alltoall", Alltoallv: "Alltoallv", Alltoallw: "Alltoallw",
	Reduce: "Reduce", Allreduce: "Allreduce", ReduceScatterBlock: "ReduceScatterBlock", ReduceScatter: "ReduceScatter",
	Scan: "Scan", Exscan: "Exscan",
	NeighborAllgather: "NeighborAllgather", NeighborAllgatherv: "NeighborAllgatherv", NeighborAlltoall: "NeighborAlltoall",
	NeighborAlltoallv: "NeighborAlltoallv", NeighborAlltoallw: "NeighborAlltoallw",
}

// String is the collective's name.
func (o CollOp) String() string { return collNames[o] }

// Form is how a collective is called.
type Form uint8

// The forms of a collective.
const (
	Blocking Form = iota
	Nonblocking
	Persistent
)

var formNames = [...]string{Blocking: "blocking", Nonblocking: "nonblocking", Persistent: "persistent"}

// String is the form's name.
func (f Form) String() string { return formNames[f] }

// Elem is what a collective works on: a type, and what a reduction does to it.
type Elem uint8

// The kinds of elements. All reductions are exact.
const (
	Int64Sum Elem = iota
	Float64Sum
	Uint32Xor
	Uint8Or
	Int64Max   // by an operation of the user that commutes
	AffineThen // by one that does not
	NumElems
)

var elems = [...]struct {
	name  string
	bytes int
}{
	{"int64 sum", 8}, {"float64 sum", 8}, {"uint32 xor", 4}, {"uint8 or", 1}, {"int64 user max", 8}, {"affine user", 8},
}

// String is the name.
func (m Elem) String() string { return elems[m].name }

// Word is element i of what a rank of World contributes to a collective, as the
// bits of a number of the element's size. key tells collectives apart.
func (m Elem) Word(seed uint64, key, rank, i int) uint64 {
	x := Input(seed, key, rank, i)
	switch m {
	case Float64Sum:
		return math.Float64bits(float64(x))
	case AffineThen:
		return AffineInput(seed, key, rank, i).word()
	case Uint32Xor:
		return uint64(uint32(x))
	case Uint8Or:
		return uint64(uint8(x) & uint8(x>>8) & uint8(x>>16))
	}
	return uint64(x)
}

// Gap is what lies where nothing is to be written.
func (m Elem) Gap() uint64 { return 0xeeeeeeeeeeeeeeee & (1<<(8*elems[m].bytes) - 1) }

// combine is x op y.
func (m Elem) combine(x, y uint64) uint64 {
	switch m {
	case Float64Sum:
		return math.Float64bits(math.Float64frombits(x) + math.Float64frombits(y))
	case Uint32Xor:
		return x ^ y
	case Uint8Or:
		return x | y
	case Int64Max:
		return uint64(max(int64(x), int64(y)))
	case AffineThen:
		return AffineOf(x).Then(AffineOf(y)).word()
	}
	return x + y
}

// bytes is words as they lie in memory.
func (m Elem) bytes(words []uint64) []byte {
	b := make([]byte, 0, len(words)*elems[m].bytes)
	for _, w := range words {
		switch elems[m].bytes {
		case 1:
			b = append(b, byte(w))
		case 4:
			b = binary.NativeEndian.AppendUint32(b, uint32(w))
		default:
			b = binary.NativeEndian.AppendUint64(b, w)
		}
	}
	return b
}

// CallKey tells the inputs of collective calls apart: the call of event id, or,
// of a Starts, its entry k.
func CallKey(e *Event, k int) int {
	if e.Kind == Starts {
		return e.ID | (k+1)<<16
	}
	return e.ID
}

// CollResult is what lies in the receive buffer of a rank after the collective
// e, called with the inputs of key.
func (p *Program) CollResult(e *Event, key int, pl Place) []byte {
	s := p.Shape(e, pl)
	me := pl.Local[pl.Rank]
	word := func(rank, i int) uint64 { return e.Elem.Word(p.Seed, key, rank, i) }
	out := make([]uint64, s.Recv.Len)
	for i := range out {
		out[i] = e.Elem.Gap()
	}
	if s.InPlace && s.Recv.Len >= s.Send.Len {
		for i := range s.Send.Len {
			out[s.At+i] = word(me, i)
		}
	}
	switch {
	case e.Coll >= NeighborAllgather:
		p.fromNear(e, pl, s.Recv, out, word)
	case e.Coll >= Reduce:
		if e.Coll == Exscan && pl.Rank == 0 {
			return nil // undefined
		}
		p.reduced(e, pl, out, word)
	case len(out) > 0:
		p.collected(e, pl, s.Recv, out, word)
	}
	return e.Elem.bytes(out)
}

// reduced combines, element by element and in the order of ranks, what the
// peers contribute.
func (p *Program) reduced(e *Event, pl Place, out []uint64, word func(rank, i int) uint64) {
	from, first := pl.Peers(), 0
	switch e.Coll {
	case Scan:
		from = from[:pl.Rank+1]
	case Exscan:
		from = from[:pl.Rank]
	case ReduceScatterBlock:
		first = pl.Rank * len(out)
	case ReduceScatter:
		first = p.Shape(e, pl).Send.Displs[pl.Rank]
	}
	for i := range out {
		out[i] = word(from[0], first+i)
		for _, r := range from[1:] {
			out[i] = e.Elem.combine(out[i], word(r, first+i))
		}
	}
}

// at is where block k lies.
func (b Blocks) at(k int) (first, n int) {
	if b.Counts == nil {
		return k * b.Block, b.Block
	}
	return b.Displs[k], b.Counts[k]
}

// collected places the blocks of those that the rank receives from.
func (p *Program) collected(e *Event, pl Place, recv Blocks, out []uint64, word func(rank, i int) uint64) {
	peers := pl.Peers()
	// block is block k: a rank's input from element first on.
	block := func(k, rank, first int) {
		at, n := recv.at(k)
		for i := range n {
			out[at+i] = word(rank, first+i)
		}
	}
	root := peers[e.Root%len(peers)]
	switch e.Coll {
	case Bcast:
		block(0, root, 0)
	case Scatter:
		block(0, root, pl.Rank*len(out))
	case Scatterv:
		block(0, root, p.sendOf(e, root).Displs[pl.Rank])
	case Alltoallv, Alltoallw:
		for k, r := range peers {
			block(k, r, p.sendOf(e, r).Displs[pl.Rank])
		}
	default:
		for k, r := range peers {
			first := 0
			if e.Coll == Alltoall {
				first = pl.Rank * recv.Block
			}
			block(k, r, first)
		}
	}
}

// fromNear places the blocks of a rank's sources. Those of nobody stay as they
// are.
func (p *Program) fromNear(e *Event, pl Place, recv Blocks, out []uint64, word func(rank, i int) uint64) {
	near := p.Near(e.Comm, pl)
	for k, r := range near.Sources {
		if r < 0 {
			continue
		}
		first := 0
		if e.Coll >= NeighborAlltoall {
			first, _ = p.sendOf(e, r).at(near.From[k])
		}
		at, n := recv.at(k)
		for i := range n {
			out[at+i] = word(r, first+i)
		}
	}
}

// sendOf is what another rank sends.
func (p *Program) sendOf(e *Event, rank int) Blocks {
	pl, _ := p.Layout(e.Comm).Place(rank)
	return p.Shape(e, pl).Send
}
