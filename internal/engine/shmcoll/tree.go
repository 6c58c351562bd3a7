// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"iter"
	"sync/atomic"

	"gompi/collectives"
	"gompi/internal/host/mem"
)

// treeFan is the base of the tree of many ranks. Rank 0 is the root. The parent of a rank
// is the next lower rank whose number in this base ends with more zeros. So the ranks below
// one follow it directly, and each rank has few neighbours.
const treeFan = 16

// above returns the parent of a rank, or -1 for rank 0.
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

// below returns the children of a rank among size ranks, from the highest down.
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

// Near returns the neighbours of a rank in the tree.
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

// treeState is an operation that uses the tree: Barrier, Bcast, Reduce and
// Allreduce of many ranks.
//
//	gathering  each rank combines what its children have published with its
//	           own operand, and publishes that; of a barrier only the word
//	result     rank 0 publishes the whole, and all ranks that need it read it
//
// Where ranks share processors, each level costs context switches. There the
// operation uses no tree: the last rank to publish combines all operands, and
// publishes the whole in a place of its own. In a Reduce the root combines.
//
// In a Bcast all ranks read what the root publishes. A sleeping rank is woken by
// its neighbours, when they have published or continued. So a rank that has
// continued wakes its neighbours in any case.
type treeState struct {
	above int
	below []int // children, from the highest down
	upTo  int   // the first rank after those under this one
	root  int   // the root of a Reduce or a Bcast
	i     int   // index in below
	acc   []byte
	have  bool // acc holds the operands so far
	// central: without a tree, as rank 0 has published. last: this rank was the last to
	// publish.
	central, last bool
	// reader is, for each cell, 1 + the only rank that reads what this rank has published
	// there last; 0: all may.
	reader [publishSlots]int
}

func (t *treeState) begin(rank, size int) {
	if size <= TreeRanks {
		return
	}
	t.above, t.upTo = above(rank), rank+1
	for q := range below(rank, size) {
		t.below = append(t.below, q)
	}
	if len(t.below) > 0 { // the last rank under the highest child
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

// beginTree begins operations that use the tree.
func (b *Area) beginTree(o *operation, root int) {
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
	o.protocol, t.root, t.i, t.have, t.last = t, root, 0, false, false
	if t.central && o.op != collectives.OpBcast {
		o.offers = true
	}
}

func (t *treeState) step(b *Area, o *operation) bool {
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

// takeWhole takes the complete result from a rank's cell or, without a tree, from the
// shared place.
func (b *Area) takeWhole(o *operation, from int) bool {
	i := b.cell(from, o.seq)
	if w := b.view(i).word.Load(); w != o.word {
		if uint32(w>>seqShift) == o.seq {
			b.mismatch(o, from%b.size, w)
		}
		return false
	}
	if o.n > 0 {
		o.put(0, b.payload(i, o.bytes)[:o.n])
	}
	return true
}

func (b *Area) endTree(o *operation) {
	o.told = true
	b.endOfAll(o)
}

// stepCentral continues an operation without a tree.
func (b *Area) stepCentral(o *operation) bool {
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

// arrive counts this rank in operation seq, and reports whether it is the last. The cell's
// previous operation, Cells numbers before, was read and has ended.
func (b *Area) arrive(seq uint32) bool {
	arrived := &b.head.arrived[seq%Cells]
	for {
		w, n := arrived.Load(), uint32(1)
		if s := uint32(w >> 32); s == seq {
			n += uint32(w)
		} else if w != 0 && Later(s, seq) {
			return false // the other ranks have given this one up
		}
		if arrived.CompareAndSwap(w, uint64(seq)<<32|uint64(n)) {
			return int64(n) == int64(b.size)
		}
	}
}

// renewCentral clears what ended operations without a tree have left: counts, and results,
// which belong to no rank.
func (b *Area) renewCentral() {
	takeBack := func(w *atomic.Uint64) {
		if old := w.Load(); old != 0 && !Later(uint32(old>>seqShift), b.seen) {
			w.CompareAndSwap(old, 0)
		}
	}
	for i := range b.head.arrived {
		takeBack(&b.head.arrived[i])
		takeBack(&b.view(b.cell(b.size, uint32(i))).word)
	}
}

// combineAll combines what all ranks have published, from the highest down, as far as they
// have.
func (b *Area) combineAll(o *operation) bool {
	t := &b.tree
	for ; t.i < b.size; t.i++ {
		if !b.combineOf(o, b.size-1-t.i) {
			return false
		}
	}
	return true
}

// gather combines what the children have published with this rank's own operand, if all
// have.
func (b *Area) gather(o *operation) bool {
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
func (b *Area) combineOf(o *operation, q int) bool {
	i := b.cell(q, o.seq)
	if w := b.view(i).word.Load(); w != o.word {
		if uint32(w>>seqShift) == o.seq {
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
func (b *Area) combine(o *operation, p []byte) {
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

// offerTree publishes what the parent waits for, or what all ranks wait for.
func (b *Area) offerTree(o *operation) bool {
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

func (t *treeState) end(*Area, *operation, bool) {}

func (t *treeState) awaits(b *Area, o *operation, rank int) bool {
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
