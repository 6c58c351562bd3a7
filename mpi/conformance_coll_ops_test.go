// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// collCase is one collective call of one rank: its three forms on one set of
// buffers, and what a naive calculation says that they leave behind.
type collCase[T comparable] struct {
	name      string
	run       func() error
	start     func() mpi.Request
	prepare   func() *mpi.Persistent
	in, out   []T // as the call has them; in place they share memory
	input     []T // of in
	want      []T // of out
	untouched T   // what out holds before
}

// reset gives the buffers their contents before a call.
func (x *collCase[T]) reset() {
	for i := range x.out {
		x.out[i] = x.untouched
	}
	copy(x.in, x.input)
}

func (x *collCase[T]) check() error {
	for i, v := range x.out {
		if v != x.want[i] {
			return fmt.Errorf("%s: element %d of %d is %v, want %v", x.name, i, len(x.out), v, x.want[i])
		}
	}
	return nil
}

// collLab makes collCases with elements of T.
type collLab[T comparable] struct {
	c       *mpi.Comm
	n       int // elements of a block
	root    int
	inPlace bool
	gen     func(rank, i int) T // element i of what a rank contributes
	op      mpi.Op
	then    func(x, y T) T // op
	rank    int
	size    int
}

func intLab(c *mpi.Comm, n, root int, inPlace bool) *collLab[int64] {
	return &collLab[int64]{c, n, root, inPlace, func(rank, i int) int64 { return testlab.Input(7, n, rank, i) },
		mpi.Sum, func(x, y int64) int64 { return x + y }, c.Rank(), c.Size()}
}

func affineLab(c *mpi.Comm, n, root int, inPlace bool) *collLab[testlab.Affine] {
	return &collLab[testlab.Affine]{c, n, root, inPlace, func(rank, i int) testlab.Affine { return testlab.AffineInput(7, n, rank, i) },
		composition, testlab.Affine.Then, c.Rank(), c.Size()}
}

// of is the elements [from, from+n) that a rank contributes.
func (l *collLab[T]) of(rank, from, n int) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = l.gen(rank, from+i)
	}
	return s
}

// reduced combines elements [from, from+n) of the ranks below limit.
func (l *collLab[T]) reduced(limit, from, n int) []T {
	s := l.of(0, from, n)
	for r := 1; r < limit; r++ {
		for i := range s {
			s[i] = l.then(s[i], l.gen(r, from+i))
		}
	}
	return s
}

// layout is an irregular one: blocks of different lengths, also empty ones, in
// another order than that of the ranks, with gaps.
type layout struct {
	counts, displs []int
	len            int
}

func (l *collLab[T]) layout(count func(rank int) int) layout {
	v := layout{make([]int, l.size), make([]int, l.size), 1}
	for k := range l.size {
		r := (k*3 + l.rank) % l.size
		if l.size%3 == 0 {
			r = l.size - 1 - k
		}
		v.counts[r], v.displs[r] = count(r), v.len
		v.len += count(r) + k%2
	}
	return v
}

// between is the length of the block that one rank sends to another.
func (l *collLab[T]) between(from, to int) int { return l.n * ((from + 2*to) % 3) / 2 }

// blockAt is where the block for a rank begins in what another contributes to
// an irregular exchange.
func (l *collLab[T]) blockAt(to int) int { return to * 2 * l.n }

func (l *collLab[T]) sentinel() T { return l.gen(99, 1<<20) }

// make sets up the buffers: in of input; out, which holds want in the end and is
// the sentinel where want says nothing. shared, if the call is in place, cuts
// in and out from one piece of memory of so many elements.
func (l *collLab[T]) make(name string, input, want []T, shared func(mem []T) (in, out []T)) *collCase[T] {
	x := &collCase[T]{name: fmt.Sprintf("%s of %d", name, l.n), input: input, want: want, untouched: l.sentinel()}
	if l.inPlace && shared != nil {
		x.in, x.out = shared(make([]T, max(len(input), len(want))))
		x.name += " in place"
	} else {
		x.in, x.out = make([]T, len(input)), make([]T, len(want))
	}
	return x
}

func (l *collLab[T]) gaps(n int) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = l.sentinel()
	}
	return s
}

func same[T any](mem []T) (in, out []T) { return mem, mem }

// cases are all collectives of an intracommunicator.
func (l *collLab[T]) cases() []*collCase[T] {
	cs := []*collCase[T]{
		l.barrier(), l.bcast(), l.gather(), l.gatherv(), l.scatter(), l.scatterv(), l.allgather(), l.allgatherv(),
		l.alltoall(), l.alltoallv(), l.alltoallw(), l.reduce(), l.reduceScatterBlock(), l.reduceScatter(), l.exscan(),
	}
	cs = append(cs, l.alike("Allreduce", l.reduced(l.size, 0, l.n), mpi.Allreduce[T], mpi.Iallreduce[T], mpi.AllreduceInit[T]),
		l.alike("Scan", l.reduced(l.rank+1, 0, l.n), mpi.Scan[T], mpi.Iscan[T], mpi.ScanInit[T]))
	return cs
}

func (l *collLab[T]) barrier() *collCase[T] {
	return &collCase[T]{name: "Barrier", run: l.c.Barrier, start: l.c.Ibarrier, prepare: l.c.BarrierInit}
}

func (l *collLab[T]) bcast() *collCase[T] {
	var input []T
	if l.rank == l.root {
		input = l.of(l.root, 0, l.n)
	}
	x := l.make("Bcast", nil, l.of(l.root, 0, l.n), nil)
	x.in, x.input = x.out, input
	x.run = func() error { return mpi.Bcast(l.c, x.out, l.root) }
	x.start = func() mpi.Request { return mpi.Ibcast(l.c, x.out, l.root) }
	x.prepare = func() *mpi.Persistent { return mpi.BcastInit(l.c, x.out, l.root) }
	return x
}

// atRoot is s on the root, nil elsewhere.
func (l *collLab[T]) atRoot(s []T) []T {
	if l.rank == l.root {
		return s
	}
	return nil
}

// ownBlock cuts in out of the middle of out, or the reverse.
func (l *collLab[T]) ownBlock(at, n int) func(mem []T) (part, whole []T) {
	return func(mem []T) (part, whole []T) { return mem[at:][:n], mem }
}

func (l *collLab[T]) gather() *collCase[T] {
	var want []T
	for r := range l.size {
		want = append(want, l.of(r, 0, l.n)...)
	}
	shared := l.ownBlock(l.rank*l.n, l.n)
	if l.rank != l.root {
		shared = nil
	}
	x := l.make("Gather", l.of(l.rank, 0, l.n), l.atRoot(want), shared)
	x.run = func() error { return mpi.Gather(l.c, x.in, x.out, l.root) }
	x.start = func() mpi.Request { return mpi.Igather(l.c, x.in, x.out, l.root) }
	x.prepare = func() *mpi.Persistent { return mpi.GatherInit(l.c, x.in, x.out, l.root) }
	return x
}

// irregular is what all ranks contribute by a layout.
func (l *collLab[T]) irregular(v layout) []T {
	all := l.gaps(v.len)
	for r := range l.size {
		copy(all[v.displs[r]:], l.of(r, 0, v.counts[r]))
	}
	return all
}

func (l *collLab[T]) uneven(rank int) int { return l.n * (rank % 3) }

func (l *collLab[T]) gatherv() *collCase[T] {
	v := l.layout(l.uneven)
	shared := l.ownBlock(v.displs[l.rank], v.counts[l.rank])
	if l.rank != l.root {
		shared = nil
	}
	x := l.make("Gatherv", l.of(l.rank, 0, v.counts[l.rank]), l.atRoot(l.irregular(v)), shared)
	if l.rank != l.root {
		v = layout{}
	}
	x.run = func() error { return mpi.Gatherv(l.c, x.in, x.out, v.counts, v.displs, l.root) }
	x.start = func() mpi.Request { return mpi.Igatherv(l.c, x.in, x.out, v.counts, v.displs, l.root) }
	x.prepare = func() *mpi.Persistent { return mpi.GathervInit(l.c, x.in, x.out, v.counts, v.displs, l.root) }
	return x
}

func (l *collLab[T]) scatter() *collCase[T] {
	var shared func(mem []T) (in, out []T)
	if l.rank == l.root {
		shared = func(mem []T) (in, out []T) { return mem, mem[l.rank*l.n:][:l.n] }
	}
	x := l.make("Scatter", l.atRoot(l.of(l.root, 0, l.size*l.n)), l.of(l.root, l.rank*l.n, l.n), shared)
	x.run = func() error { return mpi.Scatter(l.c, x.in, x.out, l.root) }
	x.start = func() mpi.Request { return mpi.Iscatter(l.c, x.in, x.out, l.root) }
	x.prepare = func() *mpi.Persistent { return mpi.ScatterInit(l.c, x.in, x.out, l.root) }
	return x
}

func (l *collLab[T]) scatterv() *collCase[T] {
	v := l.layout(l.uneven)
	all := l.gaps(v.len)
	for r := range l.size {
		copy(all[v.displs[r]:], l.of(l.root, l.blockAt(r), v.counts[r]))
	}
	var shared func(mem []T) (in, out []T)
	if l.rank == l.root {
		shared = func(mem []T) (in, out []T) { return mem, mem[v.displs[l.rank]:][:v.counts[l.rank]] }
	}
	x := l.make("Scatterv", l.atRoot(all), l.of(l.root, l.blockAt(l.rank), v.counts[l.rank]), shared)
	if l.rank != l.root {
		v = layout{}
	}
	x.run = func() error { return mpi.Scatterv(l.c, x.in, v.counts, v.displs, x.out, l.root) }
	x.start = func() mpi.Request { return mpi.Iscatterv(l.c, x.in, v.counts, v.displs, x.out, l.root) }
	x.prepare = func() *mpi.Persistent { return mpi.ScattervInit(l.c, x.in, v.counts, v.displs, x.out, l.root) }
	return x
}

func (l *collLab[T]) allgather() *collCase[T] {
	var want []T
	for r := range l.size {
		want = append(want, l.of(r, 0, l.n)...)
	}
	x := l.make("Allgather", l.of(l.rank, 0, l.n), want, l.ownBlock(l.rank*l.n, l.n))
	x.run = func() error { return mpi.Allgather(l.c, x.in, x.out) }
	x.start = func() mpi.Request { return mpi.Iallgather(l.c, x.in, x.out) }
	x.prepare = func() *mpi.Persistent { return mpi.AllgatherInit(l.c, x.in, x.out) }
	return x
}

func (l *collLab[T]) allgatherv() *collCase[T] {
	v := l.layout(l.uneven)
	x := l.make("Allgatherv", l.of(l.rank, 0, v.counts[l.rank]), l.irregular(v), l.ownBlock(v.displs[l.rank], v.counts[l.rank]))
	x.run = func() error { return mpi.Allgatherv(l.c, x.in, x.out, v.counts, v.displs) }
	x.start = func() mpi.Request { return mpi.Iallgatherv(l.c, x.in, x.out, v.counts, v.displs) }
	x.prepare = func() *mpi.Persistent { return mpi.AllgathervInit(l.c, x.in, x.out, v.counts, v.displs) }
	return x
}

func (l *collLab[T]) alltoall() *collCase[T] {
	var want []T
	for r := range l.size {
		want = append(want, l.of(r, l.rank*l.n, l.n)...)
	}
	x := l.make("Alltoall", l.of(l.rank, 0, l.size*l.n), want, same[T])
	x.run = func() error { return mpi.Alltoall(l.c, x.in, x.out) }
	x.start = func() mpi.Request { return mpi.Ialltoall(l.c, x.in, x.out) }
	x.prepare = func() *mpi.Persistent { return mpi.AlltoallInit(l.c, x.in, x.out) }
	return x
}

// exchange are the layouts and contents of an irregular exchange. In place a
// pair exchanges blocks of one length.
func (l *collLab[T]) exchange() (s, r layout, input, want []T) {
	s = l.layout(func(to int) int { return l.between(l.rank, to) })
	r = l.layout(func(from int) int { return l.between(from, l.rank) })
	if l.inPlace {
		r = l.layout(func(other int) int { return l.between(min(l.rank, other), max(l.rank, other)) })
		s = r
	}
	input, want = l.gaps(s.len), l.gaps(r.len)
	for k := range l.size {
		copy(input[s.displs[k]:], l.of(l.rank, l.blockAt(k), s.counts[k]))
		copy(want[r.displs[k]:], l.of(k, l.blockAt(l.rank), r.counts[k]))
	}
	return s, r, input, want
}

func (l *collLab[T]) alltoallv() *collCase[T] {
	s, r, input, want := l.exchange()
	x := l.make("Alltoallv", input, want, same[T])
	x.run = func() error { return mpi.Alltoallv(l.c, x.in, s.counts, s.displs, x.out, r.counts, r.displs) }
	x.start = func() mpi.Request {
		return mpi.Ialltoallv(l.c, x.in, s.counts, s.displs, x.out, r.counts, r.displs)
	}
	x.prepare = func() *mpi.Persistent {
		return mpi.AlltoallvInit(l.c, x.in, s.counts, s.displs, x.out, r.counts, r.displs)
	}
	return x
}

// bufs are the blocks of s as Bufs.
func bufs[T any](s []T, v layout) []mpi.Buf {
	bs := make([]mpi.Buf, len(v.counts))
	for i := range bs {
		bs[i] = mpi.BufOf(s[v.displs[i]:][:v.counts[i]])
	}
	return bs
}

func (l *collLab[T]) alltoallw() *collCase[T] {
	s, r, input, want := l.exchange()
	x := l.make("Alltoallw", input, want, same[T])
	in, out := bufs(x.in, s), bufs(x.out, r)
	x.run = func() error { return l.c.Bufs().Alltoallw(in, out) }
	x.start = func() mpi.Request { return l.c.Bufs().Ialltoallw(in, out) }
	x.prepare = func() *mpi.Persistent { return l.c.Bufs().AlltoallwInit(in, out) }
	return x
}

func (l *collLab[T]) reduce() *collCase[T] {
	var shared func(mem []T) (in, out []T)
	if l.rank == l.root {
		shared = same[T]
	}
	x := l.make("Reduce", l.of(l.rank, 0, l.n), l.atRoot(l.reduced(l.size, 0, l.n)), shared)
	x.run = func() error { return mpi.Reduce(l.c, x.in, x.out, l.op, l.root) }
	x.start = func() mpi.Request { return mpi.Ireduce(l.c, x.in, x.out, l.op, l.root) }
	x.prepare = func() *mpi.Persistent { return mpi.ReduceInit(l.c, x.in, x.out, l.op, l.root) }
	return x
}

// alike is a reduction whose buffers have one length everywhere.
func (l *collLab[T]) alike(name string, want []T, run func(*mpi.Comm, []T, []T, mpi.Op) error,
	start func(*mpi.Comm, []T, []T, mpi.Op) mpi.Request, prepare func(*mpi.Comm, []T, []T, mpi.Op) *mpi.Persistent) *collCase[T] {
	x := l.make(name, l.of(l.rank, 0, l.n), want, same[T])
	x.run = func() error { return run(l.c, x.in, x.out, l.op) }
	x.start = func() mpi.Request { return start(l.c, x.in, x.out, l.op) }
	x.prepare = func() *mpi.Persistent { return prepare(l.c, x.in, x.out, l.op) }
	return x
}

func (l *collLab[T]) exscan() *collCase[T] {
	want := l.gaps(l.n)
	switch {
	case l.rank > 0:
		want = l.reduced(l.rank, 0, l.n)
	case l.inPlace:
		want = l.of(0, 0, l.n)
	}
	return l.alike("Exscan", want, mpi.Exscan[T], mpi.Iexscan[T], mpi.ExscanInit[T])
}

func (l *collLab[T]) reduceScatterBlock() *collCase[T] {
	x := l.make("ReduceScatterBlock", l.of(l.rank, 0, l.size*l.n), l.reduced(l.size, l.rank*l.n, l.n),
		func(mem []T) (in, out []T) { return mem, mem[:l.n] })
	x.run = func() error { return mpi.ReduceScatterBlock(l.c, x.in, x.out, l.op) }
	x.start = func() mpi.Request { return mpi.IreduceScatterBlock(l.c, x.in, x.out, l.op) }
	x.prepare = func() *mpi.Persistent { return mpi.ReduceScatterBlockInit(l.c, x.in, x.out, l.op) }
	return x
}

func (l *collLab[T]) reduceScatter() *collCase[T] {
	counts, before, total := make([]int, l.size), 0, 0
	for r := range counts {
		counts[r] = l.uneven(r + 1)
		if r < l.rank {
			before += counts[r]
		}
		total += counts[r]
	}
	x := l.make("ReduceScatter", l.of(l.rank, 0, total), l.reduced(l.size, before, counts[l.rank]),
		func(mem []T) (in, out []T) { return mem, mem[:counts[l.rank]] })
	x.run = func() error { return mpi.ReduceScatter(l.c, x.in, x.out, counts, l.op) }
	x.start = func() mpi.Request { return mpi.IreduceScatter(l.c, x.in, x.out, counts, l.op) }
	x.prepare = func() *mpi.Persistent { return mpi.ReduceScatterInit(l.c, x.in, x.out, counts, l.op) }
	return x
}

// checkCases makes every call in one of its forms and compares the result.
func checkCases[T comparable](t *mpitest.T, cases []*collCase[T], first int) {
	for i, x := range cases {
		x.reset()
		var err error
		switch (first + i) % 3 {
		case 0:
			err = x.run()
		case 1:
			_, err = x.start().Wait()
		case 2:
			p := x.prepare()
			if err = p.Start(); err == nil {
				_, err = p.Wait()
			}
			must(t, p.Free())
		}
		if err == nil {
			err = x.check()
		}
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
	}
}

// checkEveryCollective makes every call at several lengths, roots and forms, in
// place and not.
func checkEveryCollective(t *mpitest.T, w *mpi.Comm) {
	for i, n := range []int{0, 1, 5, 300, 4001} {
		for _, inPlace := range []bool{false, true} {
			checkCases(t, intLab(w, n, i%w.Size(), inPlace).cases(), i)
			checkCases(t, affineLab(w, n, (i+1)%w.Size(), inPlace).cases(), i+1)
		}
	}
}
