// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"gompi/mpi"
	"gompi/mpitest"
)

// texture puts the numbers of an element anywhere: in any order, before its
// address, with gaps, and elements upwards or downwards in memory.
type texture struct {
	places []int // of the numbers, in numbers
	extent int   // in numbers
	dt     mpi.Datatype
}

func drawTexture(r *rand.Rand, k int) texture {
	number := mpi.TypeOf[int64]()
	if r.IntN(4) == 0 {
		dt, _ := mpi.TypeContiguous(k, number)
		places := make([]int, k)
		for i := range places {
			places[i] = i
		}
		return texture{places, k, dt}
	}
	span := k + r.IntN(6)
	l := texture{places: r.Perm(span)[:k], extent: span + r.IntN(4)}
	if r.IntN(2) == 0 {
		slices.Sort(l.places)
	}
	if r.IntN(2) == 0 {
		l.extent = -l.extent
	}
	shift := r.IntN(2*span+1) - span
	for i := range l.places {
		l.places[i] += shift
	}
	dt, err := mpi.TypeIndexedBlock(1, l.places, number)
	if err == nil {
		dt, err = mpi.TypeResized(dt, 8*(r.IntN(9)-4), 8*l.extent)
	}
	if err != nil {
		panic(err)
	}
	l.dt = dt
	return l
}

// laid is a buffer of n elements with a texture.
type laid struct {
	texture
	n, origin int
	mem       []int64
}

// untouched is what memory holds that is no number's, or not yet.
const untouched = -7777

func newLaid(a texture, n int) *laid {
	lo, hi := 0, 0
	for _, p := range a.places {
		for _, e := range []int{0, max(n-1, 0)} {
			lo, hi = min(lo, e*a.extent+p), max(hi, e*a.extent+p)
		}
	}
	b := &laid{texture: a, n: n, origin: -lo, mem: make([]int64, hi-lo+1)}
	for i := range b.mem {
		b.mem[i] = untouched
	}
	return b
}

func (b *laid) buf() mpi.Buf { return mpi.BufAt(b.dt, b.mem, b.origin, b.n) }

// numbers is how many numbers there are.
func (b *laid) numbers() int { return b.n * len(b.places) }

// at is where number i lies.
func (b *laid) at(i int) int {
	k := len(b.places)
	return b.origin + i/k*b.extent + b.places[i%k]
}

func (b *laid) fill(f func(i int) int64) *laid {
	for i := range b.numbers() {
		b.mem[b.at(i)] = f(i)
	}
	return b
}

// check compares all memory, after a call that ended with err.
func (b *laid) check(err error, want func(i int) int64) error {
	if err != nil {
		return err
	}
	all := newLaid(b.texture, b.n).fill(want).mem
	for i := range all {
		if b.mem[i] != all[i] {
			return fmt.Errorf("memory %d of %d elements at %v, %d apart, is %d, want %d", i, b.n, b.places, b.extent, b.mem[i], all[i])
		}
	}
	return nil
}

// deal is the arguments of a collective: what is equal on all ranks, and
// textures of the caller's own.
type deal struct {
	w              *mpi.Comm
	me, size, root int
	n, k           int // elements, numbers in each
	counts         []int
	own            *rand.Rand
	in, out        texture
}

func drawDeal(w *mpi.Comm, seed uint64, most int) *deal {
	r := rand.New(rand.NewPCG(seed, 1))
	d := &deal{w: w, me: w.Rank(), size: w.Size(), n: 1 + r.IntN(most), k: 1 + r.IntN(5), counts: make([]int, w.Size())}
	d.root = r.IntN(d.size)
	for i := range d.counts {
		d.counts[i] = r.IntN(d.n + 1)
	}
	d.own = rand.New(rand.NewPCG(seed, uint64(2+d.me)))
	d.in, d.out = drawTexture(d.own, d.k), drawTexture(d.own, d.k)
	return d
}

// mine is n elements of the caller's to send.
func (d *deal) mine(n int) *laid { return newLaid(d.in, n).fill(d.from(d.me)) }

// from is what a rank's buffers hold.
func (d *deal) from(rank int) func(i int) int64 {
	return func(i int) int64 { return int64(rank+1)*1_000_000 + int64(i) }
}

// atRoot is n at the root, else 0.
func (d *deal) atRoot(n int) int {
	if d.me == d.root {
		return n
	}
	return 0
}

// spread places blocks in any order, with gaps.
func (d *deal) spread(counts []int) (displs []int, total int) {
	displs = make([]int, len(counts))
	for _, i := range d.own.Perm(len(counts)) {
		total += d.own.IntN(3)
		displs[i] = total
		total += counts[i]
	}
	return displs, total
}

// blocks is what a buffer holds that got its blocks of all ranks: number i of
// the block of rank q is f(q, i).
func (d *deal) blocks(counts, displs []int, f func(q, i int) int64) func(i int) int64 {
	return func(i int) int64 {
		for q, at := range displs {
			if e := i / d.k; e >= at && e < at+counts[q] {
				return f(q, i-at*d.k)
			}
		}
		return untouched
	}
}

// textureCases call a collective each.
var textureCases = []struct {
	name string
	run  func(d *deal) error
}{
	{"Bcast", func(d *deal) error {
		b := newLaid(d.in, d.n)
		if d.me == d.root {
			b.fill(d.from(d.root))
		}
		return b.check(d.w.Bufs().Bcast(b.buf(), d.root), d.from(d.root))
	}},
	{"Gatherv", func(d *deal) error {
		displs, total := d.spread(d.counts)
		out := newLaid(d.out, d.atRoot(total))
		err := d.w.Bufs().Gatherv(d.mine(d.counts[d.me]).buf(), out.buf(), d.counts, displs, d.root)
		return out.check(err, d.blocks(d.counts, displs, func(q, i int) int64 { return d.from(q)(i) }))
	}},
	{"Scatter", func(d *deal) error {
		out := newLaid(d.out, d.n)
		err := d.w.Bufs().Scatter(d.mine(d.atRoot(d.n*d.size)).buf(), out.buf(), d.root)
		return out.check(err, func(i int) int64 { return d.from(d.root)(d.me*d.n*d.k + i) })
	}},
	{"Allgatherv", func(d *deal) error {
		displs, total := d.spread(d.counts)
		out := newLaid(d.out, total)
		err := d.w.Bufs().Allgatherv(d.mine(d.counts[d.me]).buf(), out.buf(), d.counts, displs)
		return out.check(err, d.blocks(d.counts, displs, func(q, i int) int64 { return d.from(q)(i) }))
	}},
	{"Alltoall", func(d *deal) error {
		out := newLaid(d.out, d.n*d.size)
		block := d.n * d.k
		err := d.w.Bufs().Alltoall(d.mine(d.n*d.size).buf(), out.buf())
		return out.check(err, func(i int) int64 { return d.from(i / block)(d.me*block + i%block) })
	}},
	{"Alltoallv", func(d *deal) error {
		send, recv := make([]int, d.size), make([]int, d.size)
		for q := range d.size {
			send[q], recv[q] = d.counts[(d.me+2*q)%d.size], d.counts[(q+2*d.me)%d.size]
		}
		sendAt, sendTotal := d.spread(send)
		recvAt, recvTotal := d.spread(recv)
		in := newLaid(d.in, sendTotal)
		in.fill(d.blocks(send, sendAt, func(q, i int) int64 { return d.from(d.me*d.size + q)(i) }))
		out := newLaid(d.out, recvTotal)
		err := d.w.Bufs().Alltoallv(in.buf(), send, sendAt, out.buf(), recv, recvAt)
		return out.check(err, d.blocks(recv, recvAt, func(q, i int) int64 { return d.from(q*d.size + d.me)(i) }))
	}},
	{"Allreduce", func(d *deal) error {
		out := newLaid(d.out, d.n)
		return out.check(d.w.Bufs().Allreduce(d.mine(d.n).buf(), out.buf(), mpi.Sum), func(i int) (sum int64) {
			for q := range d.size {
				sum += d.from(q)(i)
			}
			return sum
		})
	}},
	{"Reduce", func(d *deal) error {
		out := newLaid(d.out, d.atRoot(d.n))
		return out.check(d.w.Bufs().Reduce(d.mine(d.n).buf(), out.buf(), leftmost, d.root), d.from(0))
	}},
	{"Scan", func(d *deal) error {
		out := newLaid(d.out, d.n)
		return out.check(d.w.Bufs().Scan(d.mine(d.n).buf(), out.buf(), rightmost), d.from(d.me))
	}},
	{"ReduceScatterBlock", func(d *deal) error {
		out := newLaid(d.out, d.n)
		err := d.w.Bufs().ReduceScatterBlock(d.mine(d.n*d.size).buf(), out.buf(), leftmost)
		return out.check(err, func(i int) int64 { return d.from(0)(d.me*d.n*d.k + i) })
	}},
}

// Operations that are associative, and not commutative.
var (
	leftmost  = mpi.NewOp(func(in, inout []int64) { copy(inout, in) }).Ordered()
	rightmost = mpi.NewOp(func(in, inout []int64) {}).Ordered()
)

// checkTextures: a collective moves the same numbers however they are
// arranged, which every rank and buffer does in its own way, and touches nothing
// between them.
func checkTextures(t *mpitest.T, w *mpi.Comm) {
	for seed, most := range []int{6, 60, 600, 3000} {
		for i, c := range textureCases {
			if err := c.run(drawDeal(w, uint64(100*seed+i), most)); err != nil {
				t.Fatalf("%s of up to %d elements: %v", c.name, most, err)
			}
		}
	}
}
