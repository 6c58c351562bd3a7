// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/transport"
)

// singleCopy is the part of an operation that moves large data once: ranks
// register their buffers, and read from each other's. docs/design/012-shared-memory-collectives.md.
//
//	offering    publish {key}
//	moving      read what this rank needs; reductions: reduce its segment
//	resulting   reductions: publish where the segment lies
//	collecting  reductions: read the other segments
//	leaving     wait until nobody reads from this rank any more
type singleCopy struct {
	stage      readStage
	reduces    bool
	second     bool // the segments of a reduction are published, too
	registered bool // others read from this rank
	inPlace    bool
	relays     bool // this rank can relay it: see relay
	root       int
	count      int64
	// recv and recvAt are what comes from each rank, of Allgatherv.
	recv, recvAt []int64

	readers [2]int   // who reads from this rank: the first, and the first after them
	regions []uint64 // that this rank has registered
	i       int      // of the sources
	at      int64    // bytes of that source, or of the segment
	from, n int64    // the segment of this rank
	in      []byte
	acc     [2][]byte // operands of one piece
	hold    []byte    // a segment that must not be in place yet
	// Exscan: whether each rank makes what the next one needs, and that.
	partials bool
	partial  []byte
}

type readStage uint8

const (
	offering readStage = iota
	moving
	resulting
	collecting
	leaving
)

// keyBytes is the length of a key.
const keyBytes = 8

// beginRead is begin for operations that read.
func (b *Board) beginRead(o *operation, a *Call) {
	g, r := &a.Args, &b.single
	r.stage, r.reduces, r.second, r.registered, r.inPlace, r.relays = offering, false, false, true, g.InPlace, false
	r.root, r.count, r.i, r.at, r.from, r.n = g.Root, g.Count, 0, 0, 0, 0
	r.recv, r.recvAt = g.Counts, g.Displs
	o.family, o.all, o.kernel, o.unit, o.offered = r, false, a.Kernel, a.Unit, false
	o.published, o.out, o.to = nil, nil, buffer.Buf{}
	if a.Out.Strided() {
		o.to = a.Out
	} else {
		o.out = a.Out.Flat()
	}
	o.n = a.Out.Bytes()
	r.readers[0], r.readers[1] = 0, b.size
	root := 0
	switch g.Op {
	case collectives.OpBcast, collectives.OpScatter:
		root = g.Root
		r.registered = b.rank == root
		o.next, o.lo = root, root
	case collectives.OpReduce:
		root = g.Root
	case collectives.OpScan, collectives.OpExscan:
		r.registered = b.rank < b.size-1
		r.readers[0], r.readers[1] = b.rank+1, min(b.rank+2, b.size)
	}
	o.offers = r.registered
	switch {
	case g.Op == collectives.OpScan || g.Op == collectives.OpExscan:
		b.beginScan(o, a)
	case !o.offers:
	case g.Op == collectives.OpBcast:
		r.in = b.readable(a.Out, false)
	default:
		r.in = b.readable(a.In, g.InPlace && g.Op == collectives.OpAlltoall)
	}
	switch g.Op {
	case collectives.OpReduce, collectives.OpAllreduce:
		r.reduces = true
		r.relays = b.size == 2 && len(b.relays[0]) > 0 && a.Unit <= relayPiece
		if g.Op == collectives.OpReduce && g.Count*a.Unit <= aloneBytes/int64(b.size) {
			if r.from, r.n = 0, 0; b.rank == root {
				r.n = o.n
			}
			break
		}
		r.second = true
		elems := int64(len(r.in)) / a.Unit
		lo, hi := elems*int64(b.rank)/int64(b.size), elems*int64(b.rank+1)/int64(b.size)
		r.from, r.n = lo*a.Unit, (hi-lo)*a.Unit
	case collectives.OpReduceScatterBlock:
		r.reduces = true
		r.from, r.n = int64(b.rank)*o.n, o.n
	case collectives.OpReduceScatter:
		r.reduces = true
		r.from, r.n = sum(g.Counts[:b.rank])*a.Unit, o.n
	}
	if len(o.out) >= transport.MaxRead && !(r.relays && b.relay.known) {
		b.register(o.out) // it is filled from other memories
	}
	o.bytes = collectives.Published(g) * a.Unit
	o.word = cellWord(o.seq, g.Op, root, kindRegion, o.bytes)
}

// scratch is memory that lives as long as the operation.
func (b *Board) scratch(m *[]byte, n int64) []byte {
	if int64(cap(*m)) < n {
		*m = make([]byte, n)
	}
	return (*m)[:n]
}

// register lets others read a buffer until the end of the operation.
func (b *Board) register(buf []byte) uint64 {
	if len(buf) == 0 {
		return 0
	}
	k := b.regions.Register(buf)
	b.single.regions = append(b.single.regions, k)
	return k
}

// offer publishes where this rank's buffer lies.
func (b *Board) offer(o *operation) {
	i := b.cell(b.rank, o.seq)
	if o.op == collectives.OpScan || o.op == collectives.OpExscan {
		b.offerScan(o, i)
		return
	}
	key := uint64(0)
	if !(b.single.relays && b.relay.known) {
		key = b.register(b.single.in)
	}
	binary.NativeEndian.PutUint64(b.body(i), key)
	b.tellLength(o, i)
	if b.size == 2 && b.single.reduces {
		b.offerRelay(o, i)
	}
	b.publish(i, o.word)
}

func sum(v []int64) (n int64) {
	for _, x := range v {
		n += x
	}
	return n
}

// step copies little more than MaxRead bytes: the caller holds its lock.
func (r *singleCopy) step(b *Board, o *operation) (done bool) {
	o.moved = false
	for o.fault == nil {
		switch r.stage {
		case offering:
			if !b.pack(o) {
				return false
			}
			if o.offers {
				if !b.free(b.cell(b.rank, o.seq)) || r.second && !b.free(b.resultCell(b.rank, o.seq)) {
					return false
				}
				b.offer(o)
				o.told = true
			}
			r.stage = moving
		case moving:
			if b.size == 2 && r.reduces && r.i == 0 && r.at == 0 {
				if !b.published(o, 1-b.rank, o.word) {
					return o.fault != nil
				}
				if b.relayed(o) {
					return o.fault != nil || b.relay.step(b, o)
				}
			}
			if !b.move(o) {
				return false
			}
			r.stage, r.i, r.at = resulting, 0, 0
		case resulting:
			if r.second {
				b.offerResult(o)
				o.told = true
			}
			r.stage = collecting
		case collecting:
			if r.second && !b.collect(o) {
				return false
			}
			b.finished = o.seq
			b.Tell()
			o.told = true
			r.stage = leaving
		case leaving:
			if r.registered {
				for x := r.readers[0]; x < r.readers[1]; x++ {
					if Later(o.seq, b.ranks[x].done.Load()) {
						return false
					}
				}
				if r.readers[1]-r.readers[0] == b.size {
					b.seen = o.seq
				}
			}
			if len(r.hold) > 0 && !r.second {
				o.put(0, r.hold[:r.n])
			}
			return true
		}
	}
	return true
}

// move is the stage in which this rank reads. false: others have to go on first,
// or enough was copied for once.
func (b *Board) move(o *operation) bool {
	switch {
	case o.op == collectives.OpScan || o.op == collectives.OpExscan:
		return b.scan(o)
	case b.single.reduces:
		return b.reduceSegment(o)
	}
	return b.readBlocks(o)
}

// placeOf is the cell in which that word stands.
func (b *Board) placeOf(rank int, word uint64) place {
	seq := uint32(word >> 32)
	if word&kindGone == kindResult {
		return b.resultCell(rank, seq)
	}
	return b.cell(rank, seq)
}

// published reports whether a rank has published that word. If not, there may
// be a fault.
func (b *Board) published(o *operation, rank int, word uint64) bool {
	w := b.view(b.placeOf(rank, word)).word.Load()
	if w != word && w>>32 == word>>32 {
		b.mismatch(o, rank, w)
	}
	return w == word
}

// read copies a piece of a buffer that a rank has published, and sets o.moved. It
// returns false on a fault, or if the rank's process is gone and the caller has not
// heard of that yet.
func (b *Board) read(o *operation, rank int, word uint64, key uint64, off int64, dst []byte) bool {
	if len(dst) == 0 {
		return true
	}
	if f := b.regions.Gone(rank); f != nil { // it may be somebody else's; a death has ended the operation
		o.fault = f
		return false
	}
	err := b.regions.Read(rank, dst, key, off)
	// What was read counts if it was still offered afterwards.
	switch w := b.view(b.placeOf(rank, word)).word.Load(); {
	case w == word&^kindGone|kindGone:
		return false // it gave up; why, it or the control plane tells
	case w != word:
		o.fault = &fault.Fault{Class: fault.Unreachable, Peer: int32(rank), Err: fmt.Errorf("%w: cell %#x became %#x", transport.ErrProtocol, word, w)}
		return false
	case errors.Is(err, transport.ErrPeerGone):
		return false // the control plane will say how it ended
	case err != nil:
		o.fault = &fault.Fault{Class: fault.Unreachable, Peer: int32(rank), Err: err}
		return false
	}
	o.moved = true
	return true
}

func (r *singleCopy) awaits(b *Board, o *operation, rank int) bool {
	if !Later(o.seq, b.ranks[rank].done.Load()) {
		return false
	}
	switch o.op {
	case collectives.OpBcast, collectives.OpScatter:
		return r.registered || rank == r.root
	case collectives.OpScan, collectives.OpExscan:
		return rank == b.rank-1 && r.stage <= moving || rank == b.rank+1
	}
	return true
}

// readBlocks reads this rank's blocks, from the next rank on. false as move.
func (b *Board) readBlocks(o *operation) bool {
	r := &b.single
	if r.i == 0 && b.readsAll(o) && !b.allPublished(o) {
		return false
	}
	for ; r.i < b.size; r.i, r.at = r.i+1, 0 {
		src := (b.rank + r.i) % b.size
		var off, n, to int64
		switch o.op {
		case collectives.OpBcast:
			if src != r.root || b.rank == r.root {
				continue
			}
			n = o.n
		case collectives.OpScatter:
			if src != r.root {
				continue
			}
			n = o.n
			off = n * int64(b.rank)
		case collectives.OpAllgather:
			n = r.count * o.unit
			to = n * int64(src)
		case collectives.OpAllgatherv:
			n, to = r.recv[src]*o.unit, r.recvAt[src]*o.unit
		case collectives.OpAlltoall:
			n = r.count * o.unit
			off, to = n*int64(b.rank), n*int64(src)
		}
		if src == b.rank {
			if !b.keepOwn(o, off, n, to) {
				return false
			}
			continue
		}
		if !b.published(o, src, o.word) {
			return false
		}
		key := binary.NativeEndian.Uint64(b.body(b.cell(src, o.seq)))
		if !b.readRange(o, src, o.word, key, off, to, n) {
			return false
		}
	}
	return true
}

// allPublished reports whether all ranks have published. Who begins to read
// before keeps its processor from those that share it, and all others waiting
// for these.
func (b *Board) allPublished(o *operation) bool {
	for q := range b.size {
		if q != b.rank && !b.published(o, q, o.word) {
			return false
		}
	}
	return true
}

// readsAll reports whether each rank reads from all others.
func (b *Board) readsAll(o *operation) bool {
	switch o.op {
	case collectives.OpBcast, collectives.OpScatter:
		return false
	}
	return true
}

// readRange reads the rest of n bytes from off behind a rank's key to their
// place in the result. false as readBlocks.
func (b *Board) readRange(o *operation, rank int, word, key uint64, off, to, n int64) bool {
	r := &b.single
	for r.at < n {
		if o.moved {
			return false
		}
		m := min(n-r.at, transport.MaxRead)
		var dst []byte
		if o.to.Bytes() > 0 {
			dst = b.scratch(&b.packedOut, m)
		} else {
			dst = o.out[to+r.at:][:m]
		}
		if !b.read(o, rank, word, key, off+r.at, dst) {
			return false
		}
		if o.to.Bytes() > 0 {
			o.put(to+r.at, dst)
		}
		r.at += m
	}
	return true
}

// keepOwn copies this rank's own block. false: enough was copied for once.
func (b *Board) keepOwn(o *operation, off, n, to int64) bool {
	r := &b.single
	if n == 0 || r.inPlace {
		return true
	}
	m := min(n-r.at, transport.MaxRead)
	o.put(to+r.at, r.in[off+r.at:][:m])
	if r.at += m; r.at < n {
		o.moved = true
		return false
	}
	return true
}

// maxKept is how much scratch memory a board keeps between operations.
const maxKept = 4 << 20

func (r *singleCopy) end(b *Board, o *operation, failed bool) {
	b.endRead(o, failed)
	r.recv, r.recvAt = nil, nil
	dropLarge(&r.acc[0])
	dropLarge(&r.acc[1])
	dropLarge(&r.hold)
	r.hold = r.hold[:0]
}

// endRead ends an operation that read, well or not. If it failed, those who
// have read from this rank learn that it may have been too late.
func (b *Board) endRead(o *operation, failed bool) {
	r := &b.single
	if failed && o.offers {
		for _, i := range [...]place{b.cell(b.rank, o.seq), b.resultCell(b.rank, o.seq)} {
			if w := b.view(i).word.Load(); uint32(w>>32) == o.seq {
				b.view(i).word.Store(w | kindGone)
			}
		}
	}
	for _, k := range r.regions {
		b.regions.Unregister(k)
	}
	r.regions, r.in = r.regions[:0], nil
	if len(b.packing.to) > 0 {
		b.packing = packing{}
	}
	dropLarge(&b.packedIn)
	dropLarge(&b.packedOut)
}

// dropLarge forgets memory that is too long to be kept for the next operation.
func dropLarge(m *[]byte) {
	if cap(*m) > maxKept {
		*m = nil
	}
}
