// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"iter"
	"sync/atomic"

	"gompi/collectives"
	"gompi/internal/host/mem"
)

// The tree of many ranks. Rank 0 is its root; a rank stands under the next lower
// one whose number has more zeros at its end, counted to the base treeFan. So the
// ranks under one follow it, and each has to do with few others.
const treeFan = 16

// above is the rank under which another stands, -1 for rank 0.
func above(rank int) int {
	if rank == 0 {
		return -1
	}
	s := treeFan
	for rank%s == 0 {
		s *= treeFan
	}
	return rank - rank%s
}

// below are the ranks that stand directly under one of so many, from the highest
// down.
func below(rank, size int) iter.Seq[int] {
	return func(yield func(int) bool) {
		s := 1
		for rank%(s*treeFan) == 0 && rank+s*treeFan < size {
			s *= treeFan
		}
		if rank%(s*treeFan) != 0 {
			s /= treeFan
		}
		for ; s > 0; s /= treeFan {
			for k := treeFan - 1; k > 0; k-- {
				if q := rank + k*s; q < size && !yield(q) {
					return
				}
			}
		}
	}
}

// Near are the ranks beside one in the tree.
func Near(rank, size int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if up := above(rank); up >= 0 && !yield(up) {
			return
		}
		for q := range below(rank, size) {
			if !yield(q) {
				return
			}
		}
	}
}

// treeState is the part of an operation that goes along the tree: of a board of
// many ranks Barrier, Bcast, Reduce and Allreduce.
//
//	gathering  each rank combines what those below it have published with its
//	           own, and publishes that: a barrier nothing
//	result     rank 0 publishes the whole, and all who need it read it there
//
// Where ranks share processors each level costs turns on them. There it goes
// without levels: who publishes last combines all, and publishes the whole beside
// the cells of the ranks; of a Reduce the root combines.
//
// Of a Bcast there is only what the root publishes, which all read. Who sleeps is
// woken by those beside it, when they have published or gone on: so a rank that
// has gone on wakes in any case.
type treeState struct {
	above int
	below []int // from the highest down
	upTo  int   // of the ranks under this one
	root  int   // who needs the result of a Reduce, or has the data of a Bcast
	i     int   // of below
	acc   []byte
	have  bool // acc has the operands so far
	// central: without levels, as rank 0 has said. last: this rank was the last to
	// publish.
	central, last bool
	// reader is 1 and who alone reads what this rank has published last in that
	// cell; 0: all may.
	reader [places]int
}

func (t *treeState) begin(rank, size int) {
	if size <= TreeRanks {
		return
	}
	t.above, t.upTo = above(rank), rank+1
	for q := range below(rank, size) {
		t.below = append(t.below, q)
	}
	if len(t.below) > 0 { // the last rank under the highest one below
		top := t.below[0]
		s := 1
		for top%(s*treeFan) == 0 && s < size {
			s *= treeFan
		}
		t.upTo = min(top+s, size)
	}
	if rank == 0 {
		t.upTo = size
	}
}

// beginTree is begin for operations that go along the tree.
func (b *Board) beginTree(o *operation, root int) {
	t := &b.tree
	switch o.op {
	case collectives.OpBarrier:
		o.offers, o.n = true, 0
	case collectives.OpAllreduce:
		o.offers = true
	case collectives.OpReduce:
		o.offers = b.rank != 0 || root != 0
		o.next = -1
	case collectives.OpBcast:
		o.offers = b.rank == root
	default:
		return
	}
	o.family, t.root, t.i, t.have, t.last = t, root, 0, false, false
	if t.central && o.op != collectives.OpBcast {
		o.offers = true
	}
}

func (t *treeState) step(b *Board, o *operation) bool {
	if t.central && o.op != collectives.OpBcast {
		return b.stepCentral(o)
	}
	if o.op != collectives.OpBcast && !b.gather(o) {
		return o.fault != nil
	}
	if o.offers && !o.offered && !b.offerTree(o) {
		return false
	}
	from := 0
	switch {
	case o.op == collectives.OpBcast:
		from = t.root
	case o.op == collectives.OpReduce && b.rank != t.root:
		from = b.rank // it is done
	}
	if from != b.rank {
		if !b.takeWhole(o, from) {
			return o.fault != nil
		}
	} else if o.op != collectives.OpBcast && o.n > 0 && (o.all || b.rank == t.root) {
		o.put(0, t.acc[:o.n])
	}
	b.endTree(o)
	return true
}

// takeWhole takes the result that a rank has published, or the last one of all.
func (b *Board) takeWhole(o *operation, from int) bool {
	i := b.cell(from, o.seq)
	if w := b.view(i).word.Load(); w != o.word {
		if uint32(w>>32) == o.seq {
			b.mismatch(o, from%b.size, w)
		}
		return false
	}
	if o.n > 0 {
		o.put(0, b.payload(i, o.bytes)[:o.n])
	}
	return true
}

func (b *Board) endTree(o *operation) {
	o.told = true
	b.endOfAll(o)
}

// stepCentral goes on with an operation without levels.
func (b *Board) stepCentral(o *operation) bool {
	t := &b.tree
	reduce := o.op == collectives.OpReduce
	if !o.offered {
		i := b.cell(b.rank, o.seq)
		if !b.free(i) {
			return false
		}
		if o.bytes > 0 {
			b.write(o, b.payload(i, o.bytes), o.published[:o.bytes])
		}
		b.publish(i, o.word)
		o.offered = true
		if t.reader[i.number] = 0; reduce {
			t.reader[i.number] = 1 + t.root
		}
		t.last = b.arrive(o.seq)
	}
	switch {
	case reduce && b.rank != t.root:
	case reduce || t.last:
		if !b.combineAll(o) {
			return o.fault != nil
		}
		if t.last && !reduce {
			i := b.cell(b.size, o.seq)
			if o.bytes > 0 {
				mem.Put(b.payload(i, o.bytes), t.acc[:o.bytes])
			}
			b.view(i).word.Store(o.word)
		}
		if o.n > 0 {
			o.put(0, t.acc[:o.n])
		}
	case !b.takeWhole(o, b.size):
		return o.fault != nil
	}
	b.endTree(o)
	return true
}

// arrive counts this rank in operation seq, and reports whether it is the last.
// What it has published Cells numbers before was read, so that operation has
// ended.
func (b *Board) arrive(seq uint32) bool {
	arrived := &b.head.arrived[seq%Cells]
	for {
		w, n := arrived.Load(), uint32(1)
		if s := uint32(w >> 32); s == seq {
			n += uint32(w)
		} else if w != 0 && Later(s, seq) {
			return false // others have given this one up
		}
		if arrived.CompareAndSwap(w, uint64(seq)<<32|uint64(n)) {
			return int64(n) == int64(b.size)
		}
	}
}

// renewCentral takes back what operations without levels have left that are over on all ranks:
// the counts, and the results, which belong to no rank.
func (b *Board) renewCentral() {
	takeBack := func(w *atomic.Uint64) {
		if old := w.Load(); old != 0 && !Later(uint32(old>>32), b.seen) {
			w.CompareAndSwap(old, 0)
		}
	}
	for i := range b.head.arrived {
		takeBack(&b.head.arrived[i])
		takeBack(&b.view(b.cell(b.size, uint32(i))).word)
	}
}

// combineAll combines what all have published, from the highest rank down, as far
// as they have.
func (b *Board) combineAll(o *operation) bool {
	t := &b.tree
	for ; t.i < b.size; t.i++ {
		if !b.combineOf(o, b.size-1-t.i) {
			return false
		}
	}
	return true
}

// gather combines what those below have published with this rank's own, if all
// have.
func (b *Board) gather(o *operation) bool {
	t := &b.tree
	for ; t.i < len(t.below); t.i++ {
		if !b.combineOf(o, t.below[t.i]) {
			return false
		}
	}
	if t.i == len(t.below) {
		t.i++
		if o.bytes > 0 {
			b.combine(o, o.published)
		}
	}
	return true
}

// combineOf combines what rank q has published, if it has.
func (b *Board) combineOf(o *operation, q int) bool {
	i := b.cell(q, o.seq)
	if w := b.view(i).word.Load(); w != o.word {
		if uint32(w>>32) == o.seq {
			b.mismatch(o, q, w)
		}
		return false
	}
	if o.bytes > 0 {
		b.combine(o, b.payload(i, o.bytes))
	}
	return true
}

// combine takes the operand of lower ranks than those so far.
func (b *Board) combine(o *operation, p []byte) {
	t := &b.tree
	acc := b.scratch(&t.acc, o.bytes)
	t.acc = acc
	if t.have {
		o.kernel(address(acc), address(p), address(acc), o.bytes/o.unit)
		return
	}
	mem.Take(acc, p)
	t.have = true
}

// offerTree publishes what those above wait for, or what all do.
func (b *Board) offerTree(o *operation) bool {
	i := b.cell(b.rank, o.seq)
	if !b.free(i) {
		return false
	}
	p := b.tree.acc
	if o.op == collectives.OpBcast {
		p = o.published
	}
	if o.bytes > 0 {
		b.write(o, b.payload(i, o.bytes), p[:o.bytes])
	}
	b.publish(i, o.word)
	if b.tree.reader[i.number] = 0; b.rank != 0 && o.op != collectives.OpBcast {
		b.tree.reader[i.number] = 1 + b.tree.above
	}
	o.offered, o.told = true, true
	return true
}

func (t *treeState) end(*Board, *operation, bool) {}

func (t *treeState) awaits(b *Board, o *operation, rank int) bool {
	switch {
	case b.posted(rank, o.seq):
		return false
	case o.op == collectives.OpBcast:
		return rank == t.root
	case o.op == collectives.OpReduce && b.rank != t.root:
		return !t.central && rank > b.rank && rank < t.upTo
	}
	return true
}
