// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// strip holds elements of two int64 each, side by side or with gaps: ranks and
// buffers that differ in this exchange the same elements.
type strip struct {
	mem    []int64
	stride int
	buf    mpi.Buf
}

func newStrip(n int, gaps bool) *strip {
	pair, err := mpi.TypeContiguous(2, mpi.TypeOf[int64]())
	s := &strip{stride: 2}
	if gaps && err == nil {
		pair, err = mpi.TypeResized(pair, 0, 24)
		s.stride = 3
	}
	if err != nil {
		panic(err)
	}
	s.mem = make([]int64, n*s.stride)
	for i := range s.mem {
		s.mem[i] = -1
	}
	s.buf = mpi.BufAs(pair, s.mem, n)
	return s
}

func (s *strip) len() int { return len(s.mem) / s.stride }

// part is elements [at, at+n).
func (s *strip) part(at, n int) mpi.Buf {
	t := newStrip(0, s.stride == 3)
	t.mem, t.stride = s.mem[at*s.stride:(at+n)*s.stride], s.stride
	pair, _ := mpi.TypeContiguous(2, mpi.TypeOf[int64]())
	if s.stride == 3 {
		pair, _ = mpi.TypeResized(pair, 0, 24)
	}
	return mpi.BufAs(pair, t.mem, n)
}

// numberOf is the first half of element i of a rank; the second is its
// negative.
func numberOf(rank, i int) int64 { return int64(1000*(rank+1) + i) }

func (s *strip) fill(rank int) *strip {
	for i := range s.len() {
		s.mem[i*s.stride], s.mem[i*s.stride+1] = numberOf(rank, i), -numberOf(rank, i)
	}
	return s
}

// check compares all elements; what want leaves at 0 is not written.
func (s *strip) check(want func(i int) int64) error {
	for i := range s.len() {
		e := s.mem[i*s.stride:][:s.stride]
		w := [3]int64{want(i), -want(i), -1}
		if w[0] == 0 {
			w = [3]int64{-1, -1, -1}
		}
		for k := range e {
			if e[k] != w[k] {
				return fmt.Errorf("element %d is %v, want %v", i, e, w[:s.stride])
			}
		}
	}
	return nil
}

// Buffers of derived types, which differ between ranks and between the two of a
// call, with counts in elements of them.
func TestConformanceCollectivesDerived(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4} {
		overAll(t, n, func(t *mpitest.T, w *mpi.Comm) {
			for _, count := range []int{1, 6, 2000} {
				for k := range 4 {
					checkDerived(t, w, count, (w.Rank()+k)%2 == 0, (w.Rank()+k)/2%2 == 0)
				}
			}
		})
	}
}

func checkDerived(t *mpitest.T, w *mpi.Comm, n int, gapsIn, gapsOut bool) {
	rank, size := w.Rank(), w.Size()
	root := size - 1
	in := func(n int) *strip { return newStrip(n, gapsIn).fill(rank) }
	out := func(n int) *strip { return newStrip(n, gapsOut) }
	ok := func(name string, s *strip, err error, want func(i int) int64) {
		t.Helper()
		if err == nil {
			err = s.check(want)
		}
		if err != nil {
			t.Fatalf("%s of %d, gaps %v and %v: %v", name, n, gapsIn, gapsOut, err)
		}
	}
	atRoot := func(n int) int {
		if rank == root {
			return n
		}
		return 0
	}
	fromAll := func(i int) int64 { return numberOf(i/n, i%n) }

	b := out(n)
	if rank == root {
		b.fill(rank)
	}
	ok("Bcast", b, w.Bufs().Bcast(b.buf, root), func(i int) int64 { return numberOf(root, i) })

	g := out(atRoot(n * size))
	ok("Gather", g, w.Bufs().Gather(in(n).buf, g.buf, root), fromAll)
	s := out(n)
	ok("Scatter", s, w.Bufs().Scatter(in(atRoot(n*size)).buf, s.buf, root), func(i int) int64 { return numberOf(root, rank*n+i) })
	a := out(n * size)
	_, err := w.Bufs().Iallgather(in(n).buf, a.buf).Wait()
	ok("Allgather", a, err, fromAll)
	a = out(n * size)
	a.fill(rank)
	ok("Allgather in place", a, w.Bufs().Allgather(refill(a, rank, rank*n, n), a.buf), fromAll)
	x := out(n * size)
	ok("Alltoall", x, w.Bufs().Alltoall(in(n*size).buf, x.buf), func(i int) int64 { return numberOf(i/n, rank*n+i%n) })

	// Blocks of all lengths up to n, one element apart.
	counts, displs := make([]int, size), make([]int, size)
	end := 0
	for r := range size {
		counts[r], displs[r] = n*r/size, end
		end += counts[r] + 1
	}
	irregular := func(of func(r, i int) int64) func(i int) int64 {
		return func(i int) int64 {
			for r := range size {
				if k := i - displs[r]; k >= 0 && k < counts[r] {
					return of(r, k)
				}
			}
			return 0
		}
	}
	v := out(end)
	ok("Allgatherv", v, w.Bufs().Allgatherv(in(counts[rank]).buf, v.buf, counts, displs), irregular(numberOf))
	v = out(atRoot(end))
	ok("Gatherv", v, w.Bufs().Gatherv(in(counts[rank]).buf, v.buf, counts, displs, root), irregular(numberOf))
	s = out(counts[rank])
	ok("Scatterv", s, w.Bufs().Scatterv(in(atRoot(end)).buf, counts, displs, s.buf, root), func(i int) int64 { return numberOf(root, displs[rank]+i) })
	// Rank i sends counts[i] to everybody.
	mine := make([]int, size)
	for r := range mine {
		mine[r] = counts[rank]
	}
	v = out(end)
	ok("Alltoallv", v, w.Bufs().Alltoallv(in(size*counts[rank]).buf, mine, nil, v.buf, counts, displs),
		irregular(func(r, i int) int64 { return numberOf(r, rank*counts[r]+i) }))
	v = out(end)
	send, recv, all := make([]mpi.Buf, size), make([]mpi.Buf, size), in(size*counts[rank])
	for r := range size {
		send[r], recv[r] = all.part(r*counts[rank], counts[rank]), v.part(displs[r], counts[r])
	}
	ok("Alltoallw", v, w.Bufs().Alltoallw(send, recv), irregular(func(r, i int) int64 { return numberOf(r, rank*counts[r]+i) }))

	sum := func(ranks, at int) func(i int) int64 {
		return func(i int) (total int64) {
			for r := range ranks {
				total += numberOf(r, at+i)
			}
			return total
		}
	}
	q := out(n)
	ok("Allreduce", q, w.Bufs().Allreduce(in(n).buf, q.buf, mpi.Sum), sum(size, 0))
	q = out(atRoot(n))
	ok("Reduce", q, w.Bufs().Reduce(in(n).buf, q.buf, mpi.Sum, root), sum(size, 0))
	q = out(n)
	ok("ReduceScatterBlock", q, w.Bufs().ReduceScatterBlock(in(n*size).buf, q.buf, mpi.Sum), sum(size, rank*n))
	q = out(n).fill(rank)
	ok("Scan in place", q, w.Bufs().Scan(q.buf, q.buf, mpi.Sum), sum(rank+1, 0))
}

// refill gives a buffer of its own place the contents of a rank.
func refill(s *strip, rank, at, n int) mpi.Buf {
	for i := range n {
		s.mem[(at+i)*s.stride], s.mem[(at+i)*s.stride+1] = numberOf(rank, i), -numberOf(rank, i)
	}
	return s.part(at, n)
}
