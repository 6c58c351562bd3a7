// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"encoding/binary"
	"math"

	"gompi/collectives"
	"gompi/internal/control/collmem"
	"gompi/internal/host/mem"
	"gompi/transport"
)

// A cell of blocks (see vector) holds:
//
//	kindData  the block, if it is the same for all or for the only other one
//	          else {edges 2, where the first block begins 2}, {rank 2, end 2} for
//	          each, and the blocks side by side
//	kindRegion  {key 8, length 8}, likewise
//	          else {key 8, key of the table 8, edges 8} and, unless the table
//	          has a key, {rank 8, offset 8, length 8} for each
//	          of Gatherv {length 8}: a message follows
//
// A word has the length of its payload, which lies in the word's line if it fits. A rank
// with blocks for all ranks has them in the order of the ranks.

// The sizes of tables and their entries: see vector.
const (
	smallHead, smallEntry  = 4, 4
	sameRegion, lateLength = 16, 8
	wideHead, wideEntry    = 24, 24
)

const (
	_ = uint(1<<16 - 1 - collmem.MaxRoom)
	_ = uint(1<<16 - MaxRanks)
)

// offerBlocks publishes this rank's blocks, or where they are. False means that some still
// have to be packed.
func (b *Area) offerBlocks(o *operation) bool {
	r, x := &b.single, &b.vector
	c := b.cell(b.rank, o.seq)
	if x.alone {
		off, n := int64(0), x.bytes
		if !x.same {
			_, off, n = b.block(o, 1-b.rank)
		}
		if n <= b.vector.most {
			if p := b.payload(c, n); x.packs {
				x.from.Pack(p, off)
			} else {
				mem.Put(p, r.in[off:][:n])
			}
			b.publish(c, o.word|uint64(n))
			return true
		}
		if o.op == collectives.OpGatherv {
			x.late.dests = append(x.late.dests, int32(r.root))
			binary.NativeEndian.PutUint64(b.payload(c, lateLength), uint64(n))
			b.publish(c, o.word|kindRegion|lateLength)
			return true
		}
		var out []byte
		if !x.packs {
			out = r.in[off:][:n]
		} else {
			if r.in == nil {
				r.in = b.readable(x.from.Part(off, n), r.inPlace)
			}
			if !b.pack(o) {
				return false
			}
			out = r.in
		}
		p := b.payload(c, sameRegion)
		binary.NativeEndian.PutUint64(p, b.register(out))
		binary.NativeEndian.PutUint64(p[8:], uint64(n))
		r.registered = true
		b.publish(c, o.word|kindRegion|sameRegion)
		return true
	}
	edges := len(x.sendAt)
	data := int64(0)
	for i := 0; i < edges && data <= b.vector.most; i++ {
		_, _, k := b.block(o, i)
		data += min(k, b.room)
	}
	n := blocksAt(edges, data) + data
	if data <= b.vector.most && n <= b.room {
		b.offerSmall(o, b.payload(c, n), edges, int(n-data))
		b.publish(c, o.word|uint64(n))
		return true
	}
	if x.packs {
		if r.in == nil {
			r.in = b.packs(x.from, b.blockBytes(o))
		}
		if !b.packBlocks(o) {
			return false
		}
	}
	n = wideHead + wideEntry*int64(edges)
	key := uint64(0)
	if n > b.room {
		x.table = b.scratch(&x.table, n-wideHead)
		b.fillTable(o, x.table, edges)
		key, n = b.register(x.table), wideHead
	}
	p := b.payload(c, n)
	binary.NativeEndian.PutUint64(p, b.register(r.in))
	binary.NativeEndian.PutUint64(p[8:], key)
	binary.NativeEndian.PutUint64(p[16:], uint64(edges))
	if key == 0 {
		b.fillTable(o, p[wideHead:], edges)
	}
	r.registered = true
	b.publish(c, o.word|kindRegion|uint64(n))
	return true
}

// blockBytes returns the length of all blocks that others take from this rank.
func (b *Area) blockBytes(o *operation) (sum int64) {
	for i := range b.vector.sendAt {
		_, _, n := b.block(o, i)
		sum += n
	}
	return sum
}

// offerSmall writes a table and the blocks.
func (b *Area) offerSmall(o *operation, p []byte, edges, at int) {
	in, x := b.single.in, &b.vector
	binary.NativeEndian.PutUint16(p, uint16(edges))
	binary.NativeEndian.PutUint16(p[2:], uint16(at))
	for i := range edges {
		rank, off, n := b.block(o, i)
		if x.packs {
			x.from.Pack(p[at:][:n], off)
		} else {
			mem.Put(p[at:], in[off:][:n])
		}
		at += int(n)
		binary.NativeEndian.PutUint16(p[smallHead+smallEntry*i:], uint16(rank))
		binary.NativeEndian.PutUint16(p[smallHead+smallEntry*i+2:], uint16(at))
	}
}

// blocksAt returns where blocks begin after a table. Long ones begin on a line of their
// own.
func blocksAt(edges int, bytes int64) int64 {
	at := smallHead + smallEntry*int64(edges)
	if at+bytes > inlineBytes {
		at = (at + lineBytes - 1) &^ (lineBytes - 1)
	}
	return at
}

// fillTable writes where the blocks lie.
func (b *Area) fillTable(o *operation, p []byte, edges int) {
	at := int64(0)
	for i := range edges {
		rank, off, n := b.block(o, i)
		if b.vector.packs {
			off, at = at, at+n
		}
		e := p[wideEntry*i:]
		binary.NativeEndian.PutUint64(e, uint64(rank))
		binary.NativeEndian.PutUint64(e[8:], uint64(off))
		binary.NativeEndian.PutUint64(e[16:], uint64(n))
	}
}

// edge returns which of the blocks from a rank to this one comes next.
func (b *Area) edge(src int) (k int) {
	if b.vector.near {
		for _, q := range b.vector.sources[:b.single.i] {
			if int(q) == src {
				k++
			}
		}
	}
	return k
}

// blockHere returns the next block of a rank from its cell.
func (b *Area) blockHere(o *operation, src int, p []byte) ([]byte, bool) {
	edges, first := 0, 0
	if len(p) >= smallHead {
		edges, first = int(binary.NativeEndian.Uint16(p)), int(binary.NativeEndian.Uint16(p[2:]))
	}
	if edges > (len(p)-smallHead)/smallEntry {
		return nil, o.garbled(src, "%d edges in %d bytes", edges, len(p))
	}
	i, k := 0, b.edge(src)
	if !b.vector.near {
		i = b.rank
	}
	for ; i < edges; i++ {
		e := p[smallHead+smallEntry*i:]
		if int(binary.NativeEndian.Uint16(e)) != b.rank {
			continue
		}
		if k > 0 {
			k--
			continue
		}
		at, end := first, int(binary.NativeEndian.Uint16(e[2:]))
		if i > 0 {
			at = int(binary.NativeEndian.Uint16(p[smallHead+smallEntry*i-2:]))
		}
		if at > end || end > len(p) {
			return nil, o.garbled(src, "block [%d, %d) of %d bytes", at, end, len(p))
		}
		return p[at:end], true
	}
	return nil, o.garbled(src, "no block for rank %d", b.rank)
}

// wideBlock returns where the next block of a rank lies in its memory.
func (b *Area) wideBlock(o *operation, src int, w uint64, p []byte) (key uint64, off, n int64, ok bool) {
	if b.vector.alone {
		if len(p) != sameRegion {
			return 0, 0, 0, o.garbled(src, "keys of %d bytes", len(p))
		}
		return binary.NativeEndian.Uint64(p), 0, int64(binary.NativeEndian.Uint64(p[8:])), true
	}
	if len(p) < wideHead {
		return 0, 0, 0, o.garbled(src, "keys of %d bytes", len(p))
	}
	key = binary.NativeEndian.Uint64(p)
	elsewhere, edges := binary.NativeEndian.Uint64(p[8:]), binary.NativeEndian.Uint64(p[16:])
	table := p[wideHead:]
	if elsewhere == 0 && edges > uint64(len(table)/wideEntry) {
		return 0, 0, 0, o.garbled(src, "%d edges in %d bytes", edges, len(p))
	}
	k := b.edge(src)
	if elsewhere != 0 {
		off, n, ok = b.farBlock(o, src, w, elsewhere, edges, k)
	} else if off, n, _, ok = blockIn(table[:edges*wideEntry], b.rank, k); !ok {
		o.garbled(src, "no block for rank %d", b.rank)
	}
	return key, off, n, ok
}

// farBlock is blockIn for a table that is not in the cell. False means that there is a
// fault, or that enough was read in this step.
func (b *Area) farBlock(o *operation, src int, w, key, edges uint64, k int) (off, n int64, ok bool) {
	const entries, most = 64, transport.MaxRead / wideEntry
	if edges > math.MaxInt32 {
		return 0, 0, o.garbled(src, "%d edges", edges)
	}
	moved, f := o.moved, &b.vector.far
	if f.edge != b.single.i+1 {
		*f = farEdge{edge: b.single.i + 1, left: k}
	}
	piece := b.scratch(&b.single.acc[0], entries*wideEntry)
	for read := 0; f.at < edges; read += entries {
		if read > most {
			return 0, 0, false // o.moved is set
		}
		some := piece[:wideEntry*min(entries, edges-f.at)]
		if !b.read(o, src, w, key, int64(f.at*wideEntry), some) {
			return 0, 0, false
		}
		var left int
		if off, n, left, ok = blockIn(some, b.rank, f.left); ok {
			break // and is found at once if it is read in several pieces
		}
		f.at, f.left = f.at+entries, left
	}
	o.moved = moved // a table is not worth a pause
	return off, n, ok || o.garbled(src, "no block for rank %d", b.rank)
}

// farEdge is how far a table outside the cell has been searched.
type farEdge struct {
	edge int // 1 + the edge whose block is wanted
	at   uint64
	left int // blocks to skip
}

// blockIn finds the k-th block for a rank in a table, or returns how many more to skip.
func blockIn(table []byte, rank, k int) (off, n int64, left int, ok bool) {
	for ; len(table) >= wideEntry; table = table[wideEntry:] {
		if binary.NativeEndian.Uint64(table) != uint64(rank) {
			continue
		}
		if k == 0 {
			return int64(binary.NativeEndian.Uint64(table[8:])), int64(binary.NativeEndian.Uint64(table[16:])), 0, true
		}
		k--
	}
	return 0, 0, k, false
}
