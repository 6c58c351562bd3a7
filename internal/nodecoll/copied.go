// SPDX-License-Identifier: Apache-2.0

package nodecoll

import (
	"gompi/collectives"
	"gompi/internal/buffer"
	"gompi/internal/mem"
)

// prepare sets up the operation of a call. It stores field by field what the last
// operation has left otherwise: clearing all of it takes 10 ns.
func (b *Board) prepare(a *Call) {
	o, g := &b.op, &a.Args
	o.op, o.next, o.lo = g.Op, b.size-1, 0
	o.told, o.moved, o.family = false, false, nil
	if o.reads {
		if collectives.LocalLengths(g.Op, false) {
			b.beginBlocks(o, a)
		} else {
			b.beginRead(o, a)
		}
		return
	}
	o.offers, o.offered, o.all = true, false, false
	o.at, o.bytes = 0, 0
	if g.Op == collectives.OpBarrier {
		o.all, o.own = true, true
		o.word = cellWord(o.seq, g.Op, 0, kindData, 0)
		if b.size > TreeRanks {
			b.beginTree(o, 0)
		}
		return
	}
	o.unit, o.kernel, o.reduced = a.Unit, a.Kernel, false
	// A kernel must not write where it reads its left operand.
	o.own = a.Kernel == nil || !g.InPlace
	o.bytes = collectives.Published(g) * a.Unit
	o.n = a.Out.Bytes()
	if a.In.Strided() || a.Out.Strided() {
		b.flatten(o, a)
	} else {
		o.published, o.out = a.In.Flat(), a.Out.Flat()
	}
	root := 0
	switch g.Op {
	case collectives.OpAllreduce:
		o.all = true
	case collectives.OpAllgather:
		o.all, o.n = true, int64(len(o.published))
	case collectives.OpAllgatherv:
		o.all, o.counts, o.displs = true, g.Counts, g.Displs
	case collectives.OpAlltoall:
		o.all = true
		o.n = g.Count * a.Unit
		o.at = int64(b.rank) * o.n
	case collectives.OpReduceScatterBlock:
		o.all = true
		o.at = int64(b.rank) * o.n
	case collectives.OpReduceScatter:
		o.all = true
		o.at = sum(g.Counts[:b.rank]) * a.Unit
	case collectives.OpScan:
		o.next = b.rank
		o.offers = b.rank < b.size-1 || !o.own
	case collectives.OpExscan:
		o.next = b.rank - 1
		o.offers = b.rank < b.size-1
	case collectives.OpBcast, collectives.OpScatter:
		root = g.Root
		o.offers = b.rank == root
		o.next, o.lo = root, root
		if g.Op == collectives.OpScatter {
			o.at = int64(b.rank) * o.n
		} else if o.offers {
			o.published = o.out
			o.next--
		}
	case collectives.OpReduce, collectives.OpGather:
		root = g.Root
		if b.rank != root {
			o.next = -1
		} else {
			o.offers = !o.own
		}
		if g.Op == collectives.OpGather {
			o.n = int64(len(o.published))
		}
	}
	o.word = cellWord(o.seq, g.Op, root, kindData, o.bytes)
	if b.size > TreeRanks {
		b.beginTree(o, root)
	}
}

// step goes on with the operation as far as the other ranks allow. The caller
// wakes sleepers if something was told.
func (b *Board) step(o *operation) (done bool) {
	if f := o.family; f != nil {
		return f.step(b, o)
	}
	if o.offers && !o.offered {
		i := b.cell(b.rank, o.seq)
		if !b.free(i) {
			return false
		}
		if n := int64(len(o.published)); n > 0 {
			o.writeAll(b.payload(i, n))
		}
		b.publish(i, o.word)
		if b.size > TreeRanks {
			b.tree.reader[i.number] = 0
		}
		o.offered, o.told = true, true
	}
	for ; o.next >= o.lo; o.next-- {
		if o.next == b.rank && o.own {
			o.take(o.published)
			continue
		}
		i := b.cell(o.next, o.seq)
		if w := b.view(i).word.Load(); w != o.word {
			if uint32(w>>32) != o.seq {
				return false
			}
			b.mismatch(o, o.next, w)
			return o.fault != nil
		}
		n := o.bytes
		if o.op == collectives.OpAllgatherv {
			n = o.counts[o.next] * o.unit
		}
		o.take(b.payload(i, n))
	}
	switch {
	case o.operand != nil && !o.reduced:
		o.put(0, o.operand)
	case o.reduced && o.to.Bytes() > 0:
		o.put(0, o.out)
	}
	b.finished = o.seq
	if o.all && Later(o.seq-1, b.seen) {
		b.seen, b.told = o.seq-1, o.seq-1 // all have begun this one
	}
	return true
}

// writeAll writes what this rank publishes. Nobody reads the root's own block of
// a scatter. If there are several lines it goes to its place first: later it
// would wait for them.
func (o *operation) writeAll(to []byte) {
	if o.op != collectives.OpScatter || len(to) <= inlineBytes {
		o.write(to, o.published)
		return
	}
	end := o.at + o.n
	o.put(0, o.published[o.at:end])
	o.next--
	o.write(to[:o.at], o.published)
	o.write(to[end:], o.published[end:])
}

// awaits reports whether the operation cannot end without a rank that has not
// done its part.
func (b *Board) awaits(o *operation, rank int) bool {
	if f := o.family; f != nil {
		return f.awaits(b, o, rank)
	}
	return rank >= o.lo && rank <= o.next && uint32(b.view(b.cell(rank, o.seq)).word.Load()>>32) != o.seq
}

// take does with the payload p of rank next what the operation wants.
func (o *operation) take(p []byte) {
	switch o.op {
	case collectives.OpBarrier:
	case collectives.OpReduce, collectives.OpAllreduce, collectives.OpScan, collectives.OpExscan,
		collectives.OpReduceScatterBlock, collectives.OpReduceScatter:
		o.reduce(p[o.at:][:o.n])
	case collectives.OpBcast, collectives.OpScatter:
		o.put(0, p[o.at:][:o.n])
	case collectives.OpAllgatherv:
		o.put(o.displs[o.next]*o.unit, p)
	default: // Gather, Allgather, Alltoall: block after block
		o.put(int64(o.next)*o.n, p[o.at:][:o.n])
	}
}

// flatten is begin for strided buffers: what is published is packed, and what
// is reduced is so in packed memory.
func (b *Board) flatten(o *operation, a *Call) {
	if !a.In.Strided() {
		o.published = a.In.Flat()
	} else {
		o.published = b.scratch(&b.packedIn, a.In.Bytes())
		a.In.Pack(o.published, 0)
	}
	switch {
	case !a.Out.Strided():
		o.out = a.Out.Flat()
		return
	case a.Kernel != nil:
		o.out = b.scratch(&b.packedOut, a.Out.Bytes())
	case a.Args.Op == collectives.OpBcast && b.rank == a.Args.Root:
		o.out = b.scratch(&b.packedIn, a.Out.Bytes())
		a.Out.Pack(o.out, 0)
	}
	o.to = a.Out
}

// put writes a piece of the result.
func (o *operation) put(at int64, p []byte) {
	if o.to.Bytes() > 0 {
		o.to.Unpack(at, p)
	} else {
		mem.Take(o.out[at:], p)
	}
}

// reduce combines an operand from a lower rank with those so far.
func (o *operation) reduce(p []byte) {
	switch {
	case o.n == 0:
	case o.reduced:
		o.kernel(address(o.out), address(p), address(o.out), o.n/o.unit)
	case o.operand != nil:
		o.kernel(address(o.out), address(p), address(o.operand), o.n/o.unit)
		o.reduced = true
	default:
		o.operand = p
	}
}

// forget drops what belongs to the caller.
func (o *operation) forget() {
	if o.bytes > 0 {
		o.published, o.out, o.operand = nil, nil, nil
	}
	if o.to.Bytes() > 0 {
		o.to = buffer.Buf{}
	}
	o.fault = nil
}
