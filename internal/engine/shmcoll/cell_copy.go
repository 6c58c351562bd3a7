// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"slices"

	"gompi/collectives"
	"gompi/internal/data/buffer"
	"gompi/internal/data/kernel"
	"gompi/internal/host/mem"
)

// prepare sets up the operation of a call.
func (b *Area) prepare(a *Call) {
	o, g := &b.op, &a.Args
	if o.reads {
		o.op, o.next, o.lo = g.Op, b.size-1, 0
		if collectives.LocalLengths(g.Op, false) {
			b.beginBlocks(o, a)
		} else {
			b.beginRead(o, a)
		}
		return
	}
	k := FastCall{
		Op:      g.Op,
		Root:    g.Root,
		Count:   g.Count,
		Unit:    a.Unit,
		Kernel:  a.Kernel,
		InPlace: g.InPlace,
	}
	if a.In.Strided() || a.Out.Strided() {
		b.flatten(&k, a)
	} else {
		k.In, k.Out = a.In.Flat(), a.Out.Flat()
	}
	o.counts, o.displs = g.Counts, g.Displs
	b.prepareFast(&k)
}

// FastCall are the arguments of a call whose data fit cells and whose In and Out are
// contiguous.
type FastCall struct {
	Op          collectives.Op
	InPlace     bool
	Root        int
	Count, Unit int64 // as in Call; Count as in Args
	In, Out     []byte
	Kernel      kernel.Func
	// Alltoallv, of two ranks and up to PairBytes: In goes to the other rank and Out comes
	// from it; Kept is copied to KeepAt. The four do not overlap.
	Kept, KeepAt []byte
}

// prepareFast sets up the operation of a FastCall. It stores only the fields that the last
// operation may have left different: clearing all of them takes 10 ns.
func (b *Area) prepareFast(k *FastCall) {
	o := &b.op
	o.op, o.next, o.lo = k.Op, b.size-1, 0
	o.offers, o.offered, o.all = true, false, false
	o.at, o.bytes = 0, 0
	if k.Op == collectives.OpBarrier {
		o.all, o.own = true, true
		o.word = cellWord(o.seq, k.Op, 0, kindData, 0)
		if o.duplex = b.inDuplex(o); b.size > TreeRanks {
			b.beginTree(o, 0)
		}
		return
	}
	if k.Op == collectives.OpAlltoallv {
		b.beginPair(o, k)
		return
	}
	o.unit, o.kernel, o.reduced = k.Unit, k.Kernel, false
	// A kernel must not write where it reads its left operand.
	o.own = k.Kernel == nil || !k.InPlace
	o.published, o.out = k.In, k.Out
	if o.n = int64(len(k.Out)); o.to.Bytes() > 0 {
		o.n = o.to.Bytes()
	}
	o.bytes = k.Count * k.Unit
	root := 0
	switch k.Op {
	case collectives.OpAllreduce:
		o.all = true
	case collectives.OpAllgather:
		o.all, o.n = true, int64(len(o.published))
	case collectives.OpAllgatherv:
		o.all, o.bytes = true, slices.Max(o.counts)*k.Unit
	case collectives.OpAlltoall:
		o.all, o.n = true, o.bytes
		o.at = int64(b.rank) * o.n
		o.bytes *= int64(b.size)
	case collectives.OpReduceScatterBlock:
		o.all = true
		o.at = int64(b.rank) * o.n
		o.bytes *= int64(b.size)
	case collectives.OpReduceScatter:
		o.all = true
		o.at, o.bytes = sum(o.counts[:b.rank])*k.Unit, sum(o.counts)*k.Unit
	case collectives.OpScan:
		o.next = b.rank
		o.offers = b.rank < b.size-1 || !o.own
	case collectives.OpExscan:
		o.next = b.rank - 1
		o.offers = b.rank < b.size-1
	case collectives.OpBcast, collectives.OpScatter:
		root = k.Root
		o.offers = b.rank == root
		o.next, o.lo = root, root
		if k.Op == collectives.OpScatter {
			o.at = int64(b.rank) * o.n
			o.bytes *= int64(b.size)
		} else if o.offers {
			o.published = o.out
			o.next--
		}
	case collectives.OpReduce, collectives.OpGather:
		root = k.Root
		if b.rank != root {
			o.next = -1
		} else {
			o.offers = !o.own
		}
		if k.Op == collectives.OpGather {
			o.n = int64(len(o.published))
		}
	}
	o.word = cellWord(o.seq, k.Op, root, kindData, o.bytes)
	if o.duplex = b.inDuplex(o); b.size > TreeRanks {
		b.beginTree(o, root)
	}
}

// step continues the operation as far as the other ranks allow. If told is set, the caller
// must wake sleepers.
func (b *Area) step(o *operation) (done bool) {
	if f := o.protocol; f != nil {
		return f.step(b, o)
	}
	if o.offers && !o.offered {
		i := b.home(o, b.rank)
		if !b.free(i) {
			return false
		}
		if n := int64(len(o.published)); n > 0 {
			b.writeAll(o, b.payload(i, n))
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
		i := b.home(o, o.next)
		w := b.view(i).word.Load()
		if w != o.word && uint32(w>>seqShift) != o.seq {
			if b.size != 2 {
				return false
			}
			var found bool
			if i, w, found = b.aside(o); !found {
				return false
			}
		}
		if w != o.word {
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
	b.endOfAll(o)
	return true
}

// endOfAll records that an operation is over. If all ranks wait for all in it, all have
// begun it; every rank finds that, so a rank that has read nothing need not publish it.
func (b *Area) endOfAll(o *operation) {
	b.finished = o.seq
	if o.all && Later(o.seq-1, b.seen) {
		b.seen, b.told = o.seq-1, o.seq-1
	}
}

// writeAll copies what this rank publishes. The root's own block of a scatter is not read
// by others. If there are several lines, the root copies it first: later it would wait for
// the lines.
func (b *Area) writeAll(o *operation, to []byte) {
	if o.op != collectives.OpScatter || len(to) <= inlineBytes {
		b.write(o, to, o.published)
		return
	}
	end := o.at + o.n
	o.put(0, o.published[o.at:end])
	o.next--
	b.write(o, to[:o.at], o.published)
	b.write(o, to[end:], o.published[end:])
}

// awaits reports whether the operation cannot end because a rank has not done its part.
func (b *Area) awaits(o *operation, rank int) bool {
	if f := o.protocol; f != nil {
		return f.awaits(b, o, rank)
	}
	return rank >= o.lo && rank <= o.next && !b.posted(rank, o.seq)
}

// take uses the payload p of rank next.
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
	default: // Gather, Allgather, Alltoall: one block after the other
		o.put(int64(o.next)*o.n, p[o.at:][:o.n])
	}
}

// flatten replaces strided buffers by packed ones. A reduction works in packed memory.
func (b *Area) flatten(k *FastCall, a *Call) {
	if !a.In.Strided() {
		k.In = a.In.Flat()
	} else {
		k.In = b.scratch(&b.packedIn, a.In.Bytes())
		a.In.Pack(k.In, 0)
	}
	switch {
	case !a.Out.Strided():
		k.Out = a.Out.Flat()
		return
	case a.Kernel != nil:
		k.Out = b.scratch(&b.packedOut, a.Out.Bytes())
	case a.Args.Op == collectives.OpBcast && b.rank == a.Args.Root:
		k.Out = b.scratch(&b.packedIn, a.Out.Bytes())
		a.Out.Pack(k.Out, 0)
	}
	b.op.to = a.Out
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
