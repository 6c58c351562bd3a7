// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// hood is what a topology of all ranks says about neighborhood collectives:
// where the blocks that each rank receives come from.
type hood struct {
	name string
	outs []int      // blocks that each rank sends
	from [][]origin // of each block that each rank receives
}

// origin is a block that a rank sends; rank -1: nobody does.
type origin struct{ rank, block int }

// cartHood follows the definition: what goes in the negative direction arrives
// from the positive one.
func cartHood(dims []int, periods []bool) *hood {
	h := &hood{name: fmt.Sprintf("grid %v %v", dims, periods)}
	size := 1
	for _, n := range dims {
		size *= n
	}
	for r := range size {
		h.outs = append(h.outs, 2*len(dims))
		var from []origin
		stride := size
		for d, n := range dims {
			stride /= n
			at := r / stride % n
			for k, next := range []int{at - 1, at + 1} {
				o := origin{-1, 0}
				if periods[d] {
					next = (next + n) % n
				}
				if next >= 0 && next < n {
					o = origin{r + (next-at)*stride, 2*d + 1 - k}
				}
				from = append(from, o)
			}
		}
		h.from = append(h.from, from)
	}
	return h
}

// graphHood: the k-th edge from a to b arrives as the k-th of those that b has
// from a.
func graphHood(name string, dests, sources [][]int) *hood {
	h := &hood{name: fmt.Sprintf("%s %v %v", name, dests, sources)}
	for r := range dests {
		h.outs = append(h.outs, len(dests[r]))
		var from []origin
		for i, s := range sources[r] {
			k := 0
			for _, other := range sources[r][:i] {
				if other == s {
					k++
				}
			}
			for j, d := range dests[s] {
				if d == r {
					if k == 0 {
						from = append(from, origin{s, j})
						break
					}
					k--
				}
			}
		}
		h.from = append(h.from, from)
	}
	return h
}

// cases are all neighborhood collectives with blocks of n, or of up to 2n.
func (h *hood) cases(c *mpi.Comm, n int) []*collCase[int64] {
	me, from := c.Rank(), h.from[c.Rank()]
	const none = -7
	content := func(o origin, length int) []int64 {
		s := make([]int64, length)
		for i := range s {
			s[i] = int64(o.rank*1000000 + o.block*10000 + i)
		}
		return s
	}
	// uneven is the length of a block; that of one that nobody sends is none's
	// business.
	uneven := func(o origin) int { return n * ((o.rank + 2*o.block + 3) % 3) }
	fill := func(n int) []int64 { return slices.Repeat([]int64{none}, n) }
	make := func(name string, input, want []int64) *collCase[int64] {
		return &collCase[int64]{name: fmt.Sprintf("%s of %d over %s", name, n, h.name), input: input, want: want,
			in: make([]int64, len(input)), out: make([]int64, len(want)), untouched: none}
	}
	// scattered lays blocks backwards, with gaps, and gives what is in them.
	scattered := func(blocks []origin) (v layout, all []int64) {
		v.len = 1
		for _, o := range blocks {
			v.counts = append(v.counts, uneven(o))
			v.displs = append(v.displs, 0)
		}
		for i := len(blocks) - 1; i >= 0; i-- {
			v.displs[i] = v.len
			v.len += v.counts[i] + i%2
		}
		all = fill(v.len)
		for i, o := range blocks {
			if o.rank >= 0 {
				copy(all[v.displs[i]:], content(o, v.counts[i]))
			}
		}
		return v, all
	}
	mine := []origin{}
	for j := range h.outs[me] {
		mine = append(mine, origin{me, j})
	}
	first := func(os []origin) []origin { // the one block of a rank that sends the same to all
		os = slices.Clone(os)
		for i := range os {
			os[i].block = 0
		}
		return os
	}
	regular := func(os []origin) (all []int64) {
		for _, o := range os {
			if o.rank < 0 {
				all = append(all, fill(n)...)
			} else {
				all = append(all, content(o, n)...)
			}
		}
		return all
	}
	own := origin{me, 0}

	ag := make("NeighborAllgather", content(own, n), regular(first(from)))
	ag.run = func() error { return mpi.NeighborAllgather(c, ag.in, ag.out) }
	ag.start = func() mpi.Request { return mpi.IneighborAllgather(c, ag.in, ag.out) }
	ag.prepare = func() *mpi.Persistent { return mpi.NeighborAllgatherInit(c, ag.in, ag.out) }

	v, want := scattered(first(from))
	agv := make("NeighborAllgatherv", content(own, uneven(own)), want)
	agv.run = func() error { return mpi.NeighborAllgatherv(c, agv.in, agv.out, v.counts, v.displs) }
	agv.start = func() mpi.Request { return mpi.IneighborAllgatherv(c, agv.in, agv.out, v.counts, v.displs) }
	agv.prepare = func() *mpi.Persistent { return mpi.NeighborAllgathervInit(c, agv.in, agv.out, v.counts, v.displs) }

	at := make("NeighborAlltoall", regular(mine), regular(from))
	at.run = func() error { return mpi.NeighborAlltoall(c, at.in, at.out) }
	at.start = func() mpi.Request { return mpi.IneighborAlltoall(c, at.in, at.out) }
	at.prepare = func() *mpi.Persistent { return mpi.NeighborAlltoallInit(c, at.in, at.out) }

	s, input := scattered(mine)
	r, want := scattered(from)
	atv := make("NeighborAlltoallv", input, want)
	atv.run = func() error { return mpi.NeighborAlltoallv(c, atv.in, s.counts, s.displs, atv.out, r.counts, r.displs) }
	atv.start = func() mpi.Request {
		return mpi.IneighborAlltoallv(c, atv.in, s.counts, s.displs, atv.out, r.counts, r.displs)
	}
	atv.prepare = func() *mpi.Persistent {
		return mpi.NeighborAlltoallvInit(c, atv.in, s.counts, s.displs, atv.out, r.counts, r.displs)
	}

	atw := make("NeighborAlltoallw", input, want)
	in, out := bufs(atw.in, s), bufs(atw.out, r)
	atw.run = func() error { return c.Bufs().NeighborAlltoallw(in, out) }
	atw.start = func() mpi.Request { return c.Bufs().IneighborAlltoallw(in, out) }
	atw.prepare = func() *mpi.Persistent { return c.Bufs().NeighborAlltoallwInit(in, out) }
	return []*collCase[int64]{ag, agv, at, atv, atw}
}

// check makes every call in one of its forms, another one each time, and
// sometimes with long blocks.
func (h *hood) check(t *mpitest.T, c *mpi.Comm, time int) {
	n := []int{1, 0, 1, 5, 9000}[time%5]
	checkCases(t, h.cases(c, n), time)
}

// splits gives the grids of n ranks in k dimensions.
func splits(n, k int) (all [][]int) {
	if k == 1 {
		return [][]int{{n}}
	}
	for d := 1; d <= n; d++ {
		if n%d == 0 {
			for _, rest := range splits(n/d, k-1) {
				all = append(all, append([]int{d}, rest...))
			}
		}
	}
	return all
}

// everyGrid calls f for all grids of n ranks of up to three dimensions.
func everyGrid(n int, f func(dims []int, periods []bool)) {
	for k := 1; k <= 3; k++ {
		for _, dims := range splits(n, k) {
			for bits := range 1 << k {
				if n > 4 && bits > 1 && bits < 1<<k-1 && !testlab.Long() {
					continue
				}
				periods := make([]bool, k)
				for i := range periods {
					periods[i] = bits>>i&1 == 1
				}
				f(dims, periods)
			}
		}
	}
}

// eachWay runs f over all transports at all numbers of ranks, on one host, and
// on pretended ones in memory; there also with all checks. In the short form each number
// of ranks takes every other of these ways.
func eachWay(t *testing.T, f func(t *mpitest.T, w *mpi.Comm)) {
	type way struct {
		name string
		opts []mpitest.Option
	}
	var ways []way
	for _, tr := range transports {
		ways = append(ways, way{tr, []mpitest.Option{mpitest.Transport(tr)}})
	}
	for _, perHost := range []string{"1", "3"} {
		ways = append(ways, way{"hosts of " + perHost, []mpitest.Option{mpitest.Setting("GOMPI_HOSTS_PRETEND", perHost), mpitest.Setting("GOMPI_CHECK", "1")}})
	}
	for i, n := range []int{1, 2, 3, 4, 6, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			for k, w := range ways {
				if testlab.Takes(i+k, 2) {
					t.Run(w.name, func(t *testing.T) { mpitest.Run(t, n, f, w.opts...) })
				}
			}
		})
	}
}

func TestNeighborCart(t *testing.T) {
	eachWay(t, func(t *mpitest.T, w *mpi.Comm) {
		time := 0
		everyGrid(w.Size(), func(dims []int, periods []bool) {
			c, err := w.CartCreate(dims, periods, true)
			must(t, err)
			cartHood(dims, periods).check(t, c, time)
			must(t, c.Free())
			time++
		})
	})
}

// randomGraph has up to 3 edges for each pair of ranks, in any order; equal
// numbers both ways if it is symmetric.
func randomGraph(rnd *rand.Rand, n int, symmetric bool) (dests, sources [][]int) {
	dests, sources = make([][]int, n), make([][]int, n)
	add := func(from, to int) {
		dests[from] = append(dests[from], to)
		sources[to] = append(sources[to], from)
	}
	for from := range n {
		for to := range n {
			if symmetric && from > to {
				continue
			}
			for range max(0, rnd.IntN(6)-2) {
				add(from, to)
				if symmetric && from != to {
					add(to, from)
				}
			}
		}
	}
	for r := range n {
		for _, l := range [][]int{dests[r], sources[r]} {
			rnd.Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
		}
	}
	return dests, sources
}

func TestNeighborGraph(t *testing.T) {
	eachWay(t, func(t *mpitest.T, w *mpi.Comm) {
		rnd := rand.New(rand.NewPCG(7, uint64(w.Size())))
		for i := range 6 {
			dests, _ := randomGraph(rnd, w.Size(), true)
			var index, edges []int
			for _, l := range dests {
				edges = append(edges, l...)
				index = append(index, len(edges))
			}
			c, err := w.GraphCreate(index, edges, true)
			must(t, err)
			graphHood("graph", dests, dests).check(t, c, i)
			must(t, c.Free())
		}
	})
}

// In a star with one end of all edges, the others have nothing to receive, and
// that one nothing to send.
func TestNeighborStar(t *testing.T) {
	eachWay(t, func(t *mpitest.T, w *mpi.Comm) {
		var to, from []int
		if w.Rank() > 0 {
			to = []int{0}
		} else {
			for r := range w.Size() - 1 {
				from = append(from, r+1)
			}
		}
		c, err := w.DistGraphCreateAdjacent(from, nil, to, nil, nil, false)
		must(t, err)
		for _, n := range []int{0, 1, 3, 9000} {
			for _, all := range []func(send, recv []int64) error{
				func(send, recv []int64) error { return mpi.NeighborAllgather(c, send, recv) },
				func(send, recv []int64) error { return mpi.NeighborAlltoall(c, send, recv) },
				func(send, recv []int64) error { _, err := mpi.IneighborAllgather(c, send, recv).Wait(); return err },
			} {
				if w.Rank() > 0 {
					send := make([]int64, n)
					fill(send, w.Rank())
					must(t, all(send, nil))
					continue
				}
				recv := make([]int64, n*len(from))
				must(t, all(nil, recv))
				for i := range from {
					checkFill(t, recv[i*n:][:n], i+1)
				}
			}
		}
	})
}

func TestNeighborDistGraph(t *testing.T) {
	eachWay(t, func(t *mpitest.T, w *mpi.Comm) {
		rnd := rand.New(rand.NewPCG(8, uint64(w.Size())))
		for i := range 6 {
			dests, sources := randomGraph(rnd, w.Size(), false)
			c, err := w.DistGraphCreateAdjacent(sources[w.Rank()], nil, dests[w.Rank()], nil, nil, i%2 == 0)
			must(t, err)
			graphHood("distributed graph", dests, sources).check(t, c, i)
			d, err := c.Dup()
			must(t, err)
			must(t, c.Free())
			graphHood("duplicate", dests, sources).check(t, d, i+1)
			must(t, d.Free())
		}
	})
}
