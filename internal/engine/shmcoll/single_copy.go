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

// singleCopy is an operation that moves large data once: ranks register their
// buffers and read each other's. docs/design/012-shared-memory-collectives.md.
//
//	offering    publish the key of this rank's buffer
//	moving      read what this rank needs; a reduction reduces its segment
//	resulting   of reductions: publish where the segment lies
//	collecting  of reductions: read the other segments
//	leaving     wait until no rank reads from this one any more
type singleCopy struct {
	stage      readStage
	reduces    bool
	second     bool // the segments of a reduction are published, too
	registered bool // others read from this rank
	inPlace    bool
	relays     bool // this rank can relay the operation: see relay
	root       int
	count      int64
	// recv and recvAt say what comes from each rank in Allgatherv.
	recv, recvAt []int64

	readers [2]int   // the ranks that read from this one: first, and first after the last
	regions []uint64 // regions that this rank has registered
	i       int      // index of the source
	at      int64    // bytes of that source, or of the segment, that are done
	from, n int64    // this rank's segment
	in      []byte
	acc     [2][]byte // operands of one piece
	hold    []byte    // a segment that must not be in place yet
	// Exscan: whether each rank makes the next one's operand, and that operand.
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

// beginRead begins an operation that reads.
func (b *Area) beginRead(o *operation, a *Call) {
	g, r := &a.Args, &b.single
	r.stage = offering
	r.reduces = false
	r.second = false
	r.registered = true
	r.inPlace = g.InPlace
	r.relays = false
	r.root = g.Root
	r.count = g.Count
	r.i = 0
	r.at = 0
	r.from = 0
	r.n = 0
	r.recv, r.recvAt = g.Counts, g.Displs
	o.protocol = r
	o.all = false
	o.kernel = a.Kernel
	o.unit = a.Unit
	o.offered = false
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

// scratch returns memory that lives as long as the operation.
func (b *Area) scratch(m *[]byte, n int64) []byte {
	if int64(cap(*m)) < n {
		*m = make([]byte, n)
	}
	return (*m)[:n]
}

// register lets others read a buffer until the end of the operation.
func (b *Area) register(buf []byte) uint64 {
	if len(buf) == 0 {
		return 0
	}
	k := b.regions.Register(buf)
	b.single.regions = append(b.single.regions, k)
	return k
}

// offer publishes where this rank's buffer lies.
func (b *Area) offer(o *operation) {
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
func (r *singleCopy) step(b *Area, o *operation) (done bool) {
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

// move is the stage in which this rank reads. False means that other ranks must continue
// first, or that enough was copied in this step.
func (b *Area) move(o *operation) bool {
	switch {
	case o.op == collectives.OpScan || o.op == collectives.OpExscan:
		return b.scan(o)
	case b.single.reduces:
		return b.reduceSegment(o)
	}
	return b.readBlocks(o)
}

// placeOf returns the cell that has a word.
func (b *Area) placeOf(rank int, word uint64) cellRef {
	seq := uint32(word >> seqShift)
	if word&kindGone == kindResult {
		return b.resultCell(rank, seq)
	}
	return b.cell(rank, seq)
}

// published reports whether a rank has published a word. If not, there may be a fault.
func (b *Area) published(o *operation, rank int, word uint64) bool {
	w := b.view(b.placeOf(rank, word)).word.Load()
	if w != word && w>>seqShift == word>>seqShift {
		b.mismatch(o, rank, w)
	}
	return w == word
}

// read copies a piece of a buffer that a rank has published, and sets o.moved. It returns
// false on a fault, or if the rank's process has ended and the caller does not know that
// yet.
func (b *Area) read(o *operation, rank int, word uint64, key uint64, off int64, dst []byte) bool {
	if len(dst) == 0 {
		return true
	}
	if f := b.regions.Gone(rank); f != nil { // the memory may belong to another process; a death has ended the operation
		o.fault = f
		return false
	}
	err := b.regions.Read(rank, dst, key, off)
	// The bytes count if they were still offered after the read.
	switch w := b.view(b.placeOf(rank, word)).word.Load(); {
	case w == word&^kindGone|kindGone:
		return false // it gave up; that rank, or the control plane, says why
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

func (r *singleCopy) awaits(b *Area, o *operation, rank int) bool {
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

// readBlocks reads this rank's blocks, from the next rank on. It returns false as move
// does.
func (b *Area) readBlocks(o *operation) bool {
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

// allPublished reports whether all ranks have published. A rank that reads earlier keeps
// its processor from the ranks that share it, and all others wait for these.
func (b *Area) allPublished(o *operation) bool {
	for q := range b.size {
		if q != b.rank && !b.published(o, q, o.word) {
			return false
		}
	}
	return true
}

// readsAll reports whether each rank reads from all others.
func (b *Area) readsAll(o *operation) bool {
	switch o.op {
	case collectives.OpBcast, collectives.OpScatter:
		return false
	}
	return true
}

// readRange reads the rest of n bytes at off behind a rank's key to their place in the
// result. It returns false as readBlocks does.
func (b *Area) readRange(o *operation, rank int, word, key uint64, off, to, n int64) bool {
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

// keepOwn copies this rank's own block. False means that enough was copied in this step.
func (b *Area) keepOwn(o *operation, off, n, to int64) bool {
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

// maxKept is how much scratch memory an area keeps between operations.
const maxKept = 4 << 20

func (r *singleCopy) end(b *Area, o *operation, failed bool) {
	b.endRead(o, failed)
	r.recv, r.recvAt = nil, nil
	dropLarge(&r.acc[0])
	dropLarge(&r.acc[1])
	dropLarge(&r.hold)
	r.hold = r.hold[:0]
}

// endRead ends an operation that read. If it failed, ranks that have read from this one
// learn that they may have been too late.
func (b *Area) endRead(o *operation, failed bool) {
	r := &b.single
	if failed && o.offers {
		for _, i := range [...]cellRef{b.cell(b.rank, o.seq), b.resultCell(b.rank, o.seq)} {
			if w := b.view(i).word.Load(); uint32(w>>seqShift) == o.seq {
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

// dropLarge drops memory that is too large to be kept for the next operation.
func dropLarge(m *[]byte) {
	if cap(*m) > maxKept {
		*m = nil
	}
}
