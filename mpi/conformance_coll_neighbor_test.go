// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"math/rand/v2"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// edge is one arc of a communication graph, with its place among what the
// source sends and the destination receives.
type edge struct{ from, to, sent, received int }

// ringEdges are a ring, in which each rank has the positive and the negative
// neighbor of a periodic dimension: of one rank twice itself, of two twice the
// other. What goes to the negative side arrives from the positive one.
func ringEdges(n int) (es []edge) {
	for r := range n {
		es = append(es, edge{r, (r + n - 1) % n, 0, 1}, edge{r, (r + 1) % n, 1, 0})
	}
	return es
}

// randomEdges are the same on all ranks; a pair may have several.
func randomEdges(n int, rnd *rand.Rand) (es []edge) {
	sent, received := make([]int, n), make([]int, n)
	for range rnd.IntN(3*n + 1) {
		e := edge{from: rnd.IntN(n), to: rnd.IntN(n)}
		e.sent, e.received = sent[e.from], received[e.to]
		sent[e.from]++
		received[e.to]++
		es = append(es, e)
	}
	return es
}

// neighborLab makes collCases on a graph.
type neighborLab struct {
	*collLab[int64]
	out, in []edge // of this rank, by their places
}

func newNeighborLab(c *mpi.Comm, n int, es []edge) *neighborLab {
	l := &neighborLab{collLab: intLab(c, n, 0, false)}
	place := func(list []edge, i int, e edge) []edge {
		for len(list) <= i {
			list = append(list, edge{})
		}
		list[i] = e
		return list
	}
	for _, e := range es {
		if e.from == l.rank {
			l.out = place(l.out, e.sent, e)
		}
		if e.to == l.rank {
			l.in = place(l.in, e.received, e)
		}
	}
	return l
}

// uneven is the length of the block on an edge.
func (e edge) uneven(n int) int { return n * ((e.from + 2*e.to + e.sent) % 3) }

// blocks are the blocks on the edges of one side: their layout and contents.
func (l *neighborLab) blocks(es []edge, count func(e edge) int) (v layout, all []int64) {
	for _, e := range es {
		v.counts, v.displs = append(v.counts, count(e)), append(v.displs, len(all))
		all = append(all, l.of(e.from, 10*l.n*e.sent, count(e))...)
	}
	return v, all
}

func (l *neighborLab) cases() []*collCase[int64] {
	c, n := l.c, l.n
	even := func(edge) int { return n }
	uneven := func(e edge) int { return e.uneven(n) }

	var all, allv []int64
	var counts []int
	for _, e := range l.in {
		all = append(all, l.of(e.from, 0, n)...)
		allv = append(allv, l.of(e.from, 0, l.uneven(e.from))...)
		counts = append(counts, l.uneven(e.from))
	}
	ag := l.make("NeighborAllgather", l.of(l.rank, 0, n), all, nil)
	ag.set(func() error { return mpi.NeighborAllgather(c, ag.in, ag.out) },
		func() mpi.Request { return mpi.IneighborAllgather(c, ag.in, ag.out) },
		func() *mpi.Persistent { return mpi.NeighborAllgatherInit(c, ag.in, ag.out) })
	av := l.make("NeighborAllgatherv", l.of(l.rank, 0, l.uneven(l.rank)), allv, nil)
	av.set(func() error { return mpi.NeighborAllgatherv(c, av.in, av.out, counts, nil) },
		func() mpi.Request { return mpi.IneighborAllgatherv(c, av.in, av.out, counts, nil) },
		func() *mpi.Persistent { return mpi.NeighborAllgathervInit(c, av.in, av.out, counts, nil) })

	_, input := l.blocks(l.out, even)
	_, want := l.blocks(l.in, even)
	a2 := l.make("NeighborAlltoall", input, want, nil)
	a2.set(func() error { return mpi.NeighborAlltoall(c, a2.in, a2.out) },
		func() mpi.Request { return mpi.IneighborAlltoall(c, a2.in, a2.out) },
		func() *mpi.Persistent { return mpi.NeighborAlltoallInit(c, a2.in, a2.out) })

	s, input := l.blocks(l.out, uneven)
	r, want := l.blocks(l.in, uneven)
	a2v := l.make("NeighborAlltoallv", input, want, nil)
	a2v.set(func() error { return mpi.NeighborAlltoallv(c, a2v.in, s.counts, nil, a2v.out, r.counts, r.displs) },
		func() mpi.Request {
			return mpi.IneighborAlltoallv(c, a2v.in, s.counts, s.displs, a2v.out, r.counts, nil)
		},
		func() *mpi.Persistent {
			return mpi.NeighborAlltoallvInit(c, a2v.in, s.counts, nil, a2v.out, r.counts, nil)
		})
	a2w := l.make("NeighborAlltoallw", input, want, nil)
	in, out := bufs(a2w.in, s), bufs(a2w.out, r)
	a2w.set(func() error { return c.Bufs().NeighborAlltoallw(in, out) }, func() mpi.Request { return c.Bufs().IneighborAlltoallw(in, out) },
		func() *mpi.Persistent { return c.Bufs().NeighborAlltoallwInit(in, out) })
	return []*collCase[int64]{ag, av, a2, a2v, a2w}
}

// give makes the graph that of the communicator. On a ring the positive
// neighbor is listed first, as a Cartesian topology does.
func (l *neighborLab) give(ring bool) {
	var dests, sources, blocks []int32
	for _, e := range l.out {
		dests = append(dests, int32(e.to))
	}
	for _, e := range l.in {
		sources = append(sources, int32(e.from))
	}
	if ring {
		sources, blocks = []int32{sources[1], sources[0]}, []int32{1, 0}
	}
	l.c.SetNeighbors(dests, sources, blocks)
}

// TestConformanceCollectivesNeighbor: every neighborhood collective on rings
// and on random graphs.
func TestConformanceCollectivesNeighbor(t *testing.T) {
	for _, size := range []int{1, 2, 3, 5, 8} {
		overAll(t, size, func(t *mpitest.T, w *mpi.Comm) {
			wantError(t, mpi.NeighborAllgather(w, []int{1}, []int{1}), mpi.ErrTopology, "NeighborAllgather")
			rnd := rand.New(rand.NewPCG(uint64(size), 1))
			for i, n := range []int{0, 1, 7, 2000} {
				l := newNeighborLab(w, n, ringEdges(size))
				l.give(true)
				checkCases(t, l.cases(), i)
				l = newNeighborLab(w, n, randomEdges(size, rnd))
				l.give(false)
				checkCases(t, l.cases(), i+1)
			}
			// Neighbors that are nobody leave their blocks alone.
			w.SetNeighbors([]int32{-1, -1}, []int32{-1, -1}, []int32{1, 0})
			out := []int{5, 6}
			must(t, mpi.NeighborAlltoall(w, []int{1, 2}, out))
			must(t, mpi.NeighborAllgather(w, []int{1}, out))
			if out[0] != 5 || out[1] != 6 {
				t.Fatalf("blocks of nobody became %v", out)
			}
			wantError(t, mpi.NeighborAllgather(w, []int{1}, make([]int, 3)), mpi.ErrCount, "3 elements to receive, 2 expected")
			wantError(t, mpi.NeighborAlltoall(w, make([]int, 3), out), mpi.ErrCount, "3 elements to send for 2 blocks")
			wantError(t, mpi.NeighborAlltoall(w, make([]int, 4), out), mpi.ErrCount, "2 elements to receive, 4 expected")
			wantError(t, mpi.NeighborAlltoall(w, out, out), mpi.ErrArg, "overlap")
			wantError(t, mpi.NeighborAlltoallv(w, out, []int{1}, nil, nil, nil, nil), mpi.ErrCount, "1 counts, 2 expected")
			wantError(t, mpi.NeighborAllgatherv(w, out[:1], make([]int, 1), []int{0, 2}, nil), mpi.ErrCount, "neighbor 1")
			wantError(t, w.Bufs().NeighborAlltoallw(make([]mpi.Buf, 1), nil), mpi.ErrCount, "1 buffers to send, 2 expected")
			must(t, w.Barrier())
		})
	}
}
