// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"encoding/binary"
	"fmt"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/transport"
)

// vector is an operation whose lengths only some ranks know: Gatherv, Scatterv, Alltoallv,
// and neighbourhood collectives. Each owner decides whether its cell has the blocks or
// tells where they lie. In a Gatherv the owner also decides whether a message follows,
// because both sides copy a message.
type vector struct {
	near  bool // a neighbourhood collective: a pair of ranks may have several edges
	same  bool // one block for all
	alone bool // a rank's cell has one block and no table: it is for all, or there is one other rank
	ended bool // all blocks have come
	keyed bool // a block was read in place: its owner waits
	packs bool // others cannot read the send buffer, from
	blockLists
	count int64
	most  int64  // the longest payload of blocks in a cell
	table []byte // of blocks, too long for a cell
	far   farEdge
	from  buffer.Buf
	bytes int64 // of the send buffer
	// late has the blocks of a Gatherv that come by messages.
	late lateBlocks
}

// blockLists is what the caller says about blocks.
type blockLists struct {
	// dests and sources are the neighbours.
	dests, sources []int32
	// send and sendAt describe the blocks to send, by destination; recv and recvAt the
	// blocks to receive. Without lengths all blocks have the same one.
	send, sendAt, recv, recvAt []int64
}

// lateBlocks are blocks between this rank and some others, as arguments of a neighbourhood
// collective.
type lateBlocks struct {
	dests, sources []int32
	counts, displs []int64 // by source
}

// beginBlocks begins such an operation.
func (b *Area) beginBlocks(o *operation, a *Call) {
	g, r, x := &a.Args, &b.single, &b.vector
	o.protocol = x
	x.near = false
	x.same = false
	x.ended = false
	x.keyed = false
	x.packs = false
	x.count = g.Count
	x.far.edge = 0
	if x.most = b.room; !o.oversubscribed {
		x.most = min(b.room, carriedBytes)
	}
	r.i = 0
	r.at = 0
	r.registered = false
	r.inPlace = g.InPlace
	r.root = g.Root
	x.bytes = a.In.Bytes()
	o.unit = a.Unit
	o.bytes = 0
	o.n = a.Out.Bytes()
	o.all = false
	o.offers = true
	o.offered = false
	root := 0
	switch g.Op {
	case collectives.OpGatherv:
		x.late.clear()
		root, x.same, x.recv, x.recvAt = g.Root, true, g.Counts, g.Displs
		if o.offers = b.rank != root; o.offers {
			o.next = -1
		}
	case collectives.OpScatterv:
		root, x.send, x.sendAt = g.Root, g.Counts, g.Displs
		o.offers = b.rank == root
		o.next, o.lo = root, root
	case collectives.OpAlltoallv:
		x.send, x.sendAt, x.recv, x.recvAt = g.InCounts, g.InDispls, g.OutCounts, g.OutDispls
		o.all = true
	default:
		x.near, x.dests, x.sources = true, g.Dests, g.Sources
		x.send, x.sendAt, x.recv, x.recvAt = g.InCounts, g.InDispls, g.OutCounts, g.OutDispls
		x.same = g.Op == collectives.OpNeighborAllgather || g.Op == collectives.OpNeighborAllgatherv
		// Two ranks know of each other whether one waits.
		other := 1 - b.rank
		o.all = b.size == 2 && among(x.dests, other) && among(x.sources, other)
	}
	x.alone = x.same || g.Op == collectives.OpAlltoallv && b.size == 2
	o.published, o.out, o.to = nil, nil, buffer.Buf{}
	if a.Out.Strided() {
		o.to = a.Out
	} else {
		o.out = a.Out.Flat()
	}
	var plain bool
	if r.in, plain = a.In.Memory(); !plain || g.InPlace && g.Op == collectives.OpAlltoallv {
		// The blocks that others read are copied to memory that they can read and that no
		// result overwrites.
		x.packs, x.from, r.in = true, a.In, nil
	}
	if len(o.out) >= transport.MaxRead {
		b.register(o.out) // it is filled from other memories
	}
	o.word = cellWord(o.seq, g.Op, root, kindData, 0)
}

func among(list []int32, rank int) bool {
	for _, q := range list {
		if int(q) == rank {
			return true
		}
	}
	return false
}

// step copies little more than MaxRead bytes from other memories: the caller holds its
// lock.
func (x *vector) step(b *Area, o *operation) (done bool) {
	r := &b.single
	o.moved = false
	if o.offers && !o.offered {
		if !b.free(b.cell(b.rank, o.seq)) {
			return false
		}
		if o.op == collectives.OpScatterv && o.n <= storedBytes && r.i == 0 { // as in writeAll
			if !b.takeBlock(o) {
				return true
			}
			r.i, r.at = 1, 0
		}
		if !b.offerBlocks(o) {
			return false
		}
		o.offered, o.told = true, true
	}
	if !x.ended {
		for n := x.incoming(b, o); r.i < n; r.i, r.at = r.i+1, 0 {
			if !b.takeBlock(o) {
				return o.fault != nil
			}
		}
		x.ended = true
		b.endOfAll(o)
		if x.keyed {
			b.Tell()
			o.told = true
		}
	}
	if !r.registered {
		return true
	}
	for q := range b.size {
		if Later(o.seq, b.ranks[q].done.Load()) && b.readsFrom(o, q) {
			return false
		}
	}
	return true
}

// incoming returns how many blocks come to this rank, its own included.
func (x *vector) incoming(b *Area, o *operation) int {
	switch {
	case x.near:
		return len(x.sources)
	case o.op == collectives.OpScatterv:
		return 1
	case o.op == collectives.OpGatherv && b.rank != b.single.root:
		return 0
	}
	return b.size
}

// source returns the rank from which block i comes, with its length and place in bytes; -1
// means none.
func (b *Area) source(o *operation, i int) (rank int, n, to int64) {
	x := &b.vector
	switch {
	case o.op == collectives.OpScatterv:
		return b.single.root, o.n, 0
	case x.near:
		rank = int(x.sources[i])
	default: // from the next rank on
		if i += b.rank; i >= b.size {
			i -= b.size
		}
		rank = i
	}
	n = x.count
	if x.recv != nil {
		n = x.recv[i]
	}
	return rank, n * o.unit, x.recvAt[i] * o.unit
}

// readsFrom reports whether a rank takes a block of this one.
func (b *Area) readsFrom(o *operation, rank int) bool {
	switch {
	case rank == b.rank:
		return false
	case b.vector.near:
		return among(b.vector.dests, rank)
	}
	return true
}

func (x *vector) awaits(b *Area, o *operation, rank int) bool {
	r := &b.single
	done := b.ranks[rank].done.Load()
	if o.offers && !o.offered {
		return Later(b.last[o.seq%Cells], done)
	}
	if r.registered && Later(o.seq, done) && b.readsFrom(o, rank) {
		return true
	}
	if uint32(b.view(b.cell(rank, o.seq)).word.Load()>>seqShift) == o.seq {
		return false
	}
	for i, n := r.i, x.incoming(b, o); i < n; i++ {
		if src, _, _ := b.source(o, i); src == rank {
			return true
		}
	}
	return false
}

// block returns the destination and the place of what this rank sends along edge i. It is
// empty if there is no destination, or the destination is this rank.
func (b *Area) block(o *operation, i int) (rank int, off, n int64) {
	x := &b.vector
	if rank = i; x.near {
		rank = int(x.dests[i])
	}
	if rank < 0 || rank == b.rank {
		return b.rank, 0, 0
	}
	n = x.count
	if x.send != nil {
		n = x.send[i]
	}
	return rank, x.sendAt[i] * o.unit, n * o.unit
}

// takeBlock takes the next block. False means that other ranks must continue first, that
// enough was copied in this step, or that there is a fault.
func (b *Area) takeBlock(o *operation) bool {
	r, x := &b.single, &b.vector
	src, n, to := b.source(o, r.i)
	switch {
	case src < 0:
		return true
	case src == b.rank:
		return b.keepBlock(o, n, to)
	}
	c := b.cell(src, o.seq)
	w := b.view(c).word.Load()
	if (w^o.word)>>rootShift != 0 || w&kindResult != 0 {
		if uint32(w>>seqShift) == o.seq {
			b.mismatch(o, src, w)
		}
		return false
	}
	size := bytesOf(w)
	if size > b.room {
		return o.garbled(src, "a cell of %d bytes", size)
	}
	p := b.payload(c, size)
	if w&kindRegion == 0 {
		if !x.alone {
			var ok bool
			if p, ok = b.blockHere(o, src, p); !ok {
				return false
			}
		}
		if !o.agrees(src, int64(len(p)), n) {
			return false
		}
		o.put(to, p)
		return true
	}
	if o.op == collectives.OpGatherv {
		if size != lateLength {
			return o.garbled(src, "keys of %d bytes", size)
		}
		if !o.agrees(src, int64(binary.NativeEndian.Uint64(p)), n) {
			return false
		}
		x.late.sources = append(x.late.sources, int32(src))
		x.late.counts, x.late.displs = append(x.late.counts, n/o.unit), append(x.late.displs, to/o.unit)
		return true
	}
	if !x.keyed && !b.allPosted(o) {
		return false
	}
	x.keyed = true
	key, off, got, ok := b.wideBlock(o, src, w, p)
	return ok && o.agrees(src, got, n) && b.readRange(o, src, w, key, off, to, n)
}

// allPosted reports whether all sources of this rank have published; see allPublished.
func (b *Area) allPosted(o *operation) bool {
	for i := range b.vector.incoming(b, o) {
		src, _, _ := b.source(o, i)
		if src >= 0 && src != b.rank && uint32(b.view(b.cell(src, o.seq)).word.Load()>>seqShift) != o.seq {
			return false
		}
	}
	return true
}

// agrees checks the length of a block.
func (o *operation) agrees(rank int, got, want int64) bool {
	if got != want {
		o.fault = &fault.Fault{Class: fault.Mismatch, Peer: int32(rank), Got: got, Want: want}
	}
	return got == want
}

// garbled sets the fault of a cell with impossible contents. It returns false.
func (o *operation) garbled(rank int, format string, args ...any) bool {
	o.fault = &fault.Fault{Class: fault.Unreachable, Peer: int32(rank), Err: fmt.Errorf("%w: %s", transport.ErrProtocol, fmt.Sprintf(format, args...))}
	return false
}

// keepBlock copies a block that this rank sends to itself.
func (b *Area) keepBlock(o *operation, n, to int64) bool {
	r, x := &b.single, &b.vector
	if r.inPlace {
		return true
	}
	off, have := int64(0), x.bytes
	if !x.same {
		i := b.rank
		if x.near {
			if i = nth(x.dests, b.rank, b.edge(b.rank)); i < 0 {
				return o.garbled(b.rank, "no block for rank %d", b.rank)
			}
		}
		off, have = x.sendAt[i]*o.unit, x.count*o.unit
		if x.send != nil {
			have = x.send[i] * o.unit
		}
	}
	switch {
	case !o.agrees(b.rank, have, n):
		return false
	case n == 0:
		return true
	case !x.packs:
		return b.keepOwn(o, off, n, to)
	}
	m := min(n-r.at, packPiece)
	if o.to.Bytes() == 0 {
		x.from.Pack(o.out[to+r.at:][:m], off+r.at)
	} else {
		p := b.scratch(&b.packedOut, m)
		x.from.Pack(p, off+r.at)
		o.put(to+r.at, p)
	}
	if r.at += m; r.at < n {
		o.moved = true
		return false
	}
	return true
}

// nth returns the index of a rank's k-th occurrence in a list, or -1.
func nth(list []int32, rank, k int) int {
	for i, q := range list {
		if int(q) == rank {
			if k == 0 {
				return i
			}
			k--
		}
	}
	return -1
}

// end drops what belongs to the caller, and a long table.
func (x *vector) end(b *Area, o *operation, failed bool) {
	b.endRead(o, failed)
	if cap(x.table) > maxKept {
		x.table = nil
	}
	x.blockLists = blockLists{}
	if x.packs {
		x.from = buffer.Buf{}
	}
}

func (l *lateBlocks) clear() {
	*l = lateBlocks{l.dests[:0], l.sources[:0], l.counts[:0], l.displs[:0]}
}

// Late returns the blocks of a Gatherv that come to or go from this rank by messages, as
// the arguments of a neighbourhood collective. False means that there are none.
func (b *Area) Late(a *collectives.Args) bool {
	l := &b.vector.late
	if b.op.op != collectives.OpGatherv || len(l.dests)+len(l.sources) == 0 {
		return false
	}
	*a = collectives.Args{Op: collectives.OpNeighborAllgatherv, Rank: a.Rank, Size: a.Size, Count: a.Count,
		Dests: l.dests, Sources: l.sources, OutCounts: l.counts, OutDispls: l.displs}
	return true
}
