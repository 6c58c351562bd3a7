// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/internal/base/fault"
	"gompi/internal/engine/shmcoll"
)

// hood is a graph: dests and sources of each rank, in the order in which the
// edges of a pair match.
type hood struct{ dests, sources [][]int32 }

func newHood(size int, edges [][2]int) *hood {
	h := &hood{make([][]int32, size), make([][]int32, size)}
	for _, e := range edges {
		h.dests[e[0]] = append(h.dests[e[0]], int32(e[1]))
		h.sources[e[1]] = append(h.sources[e[1]], int32(e[0]))
	}
	return h
}

func randomHood(rnd *rand.Rand, size int) *hood {
	edges := make([][2]int, rnd.IntN(4*size))
	for i := range edges {
		edges[i] = [2]int{rnd.IntN(size), rnd.IntN(size)}
	}
	h := newHood(size, edges)
	for r := range size { // nobody, anywhere
		if rnd.IntN(3) == 0 {
			h.dests[r] = append([]int32{-1}, h.dests[r]...)
			h.sources[r] = append(h.sources[r], -1)
		}
	}
	return h
}

// edgeOf is which of a list's entries up to i are the same as entry i.
func edgeOf(list []int32, i int) (k int) {
	for _, q := range list[:i] {
		if q == list[i] {
			k++
		}
	}
	return k
}

// neighborCall makes a rank's call, with gaps between the blocks. length gives
// that of the k-th block from one rank to another; check compares what came.
func (n *node) neighborCall(h *hood, op collectives.Op, key int, length func(from, to, k int) int64) (a *CollArgs, check func() error) {
	rank, size := n.ctx.Rank, n.ctx.Members.Len()
	same := op == collectives.OpNeighborAllgather || op == collectives.OpNeighborAllgatherv
	lens := func(list []int32, out bool) (counts, displs []int64, end int64) {
		for i, q := range list {
			c := int64(3)
			if q >= 0 && out {
				c = length(rank, int(q), edgeOf(list, i))
			} else if q >= 0 {
				c = length(int(q), rank, edgeOf(list, i))
			}
			end += int64(i % 2)
			counts, displs = append(counts, c), append(displs, end)
			end += c
		}
		return counts, displs, end
	}
	ic, id, inEnd := lens(h.dests[rank], true)
	oc, od, outEnd := lens(h.sources[rank], false)
	if same {
		inEnd = length(rank, -1, 0)
	}
	in, out := make([]uint64, inEnd), make([]uint64, outEnd)
	for i := range in {
		in[i] = word64(key, rank, i)
	}
	a = n.call64(collectives.OpBarrier, in, out, 0, 0)
	a.Args.Op, a.Args.Size = op, size
	a.Args.Dests, a.Args.Sources, a.Args.OutDispls = h.dests[rank], h.sources[rank], od
	switch op {
	case collectives.OpNeighborAllgather:
		a.Args.Count = inEnd
	case collectives.OpNeighborAllgatherv:
		a.Args.Count, a.Args.OutCounts = inEnd, oc
	case collectives.OpNeighborAlltoall:
		a.Args.Count, a.Args.InDispls = length(0, 0, 0), id
	case collectives.OpNeighborAlltoallv:
		a.Args.InCounts, a.Args.InDispls, a.Args.OutCounts = ic, id, oc
	}
	a.Alg = algorithm(op, "read")
	return a, func() error {
		for i, q := range h.sources[rank] {
			from := int64(0)
			if q >= 0 && !same { // where the block lies there
				k, at := edgeOf(h.sources[rank], i), int64(0)
				for j, d := range h.dests[q] {
					at += int64(j % 2)
					if int(d) == rank && edgeOf(h.dests[q], j) == k {
						from = at
						break
					}
					if d < 0 {
						at += 3
					} else {
						at += length(int(q), int(d), edgeOf(h.dests[q], j))
					}
				}
			}
			for e := range oc[i] {
				want := uint64(0)
				if q >= 0 {
					want = word64(key, int(q), int(from+e))
				}
				if got := out[od[i]+e]; got != want {
					return fmt.Errorf("%v: element %d of block %d, from rank %d, is %x, want %x", op, e, i, q, got, want)
				}
			}
		}
		return nil
	}
}

var neighborOps = []collectives.Op{collectives.OpNeighborAllgather, collectives.OpNeighborAllgatherv,
	collectives.OpNeighborAlltoall, collectives.OpNeighborAlltoallv}

// TestAreaNeighbors: random graphs with several edges between two ranks,
// themselves and nobody, published and read, one call after the other with
// nothing between them.
func TestAreaNeighbors(t *testing.T) {
	for _, size := range []int{2, 3, 5, 8} {
		ns := areaJob(t, size, nil)
		rnd := rand.New(rand.NewPCG(uint64(size), 3))
		hoods := make([]*hood, 12)
		for i := range hoods {
			hoods[i] = randomHood(rnd, size)
		}
		soon(t, "program", func() error {
			var wg sync.WaitGroup
			for _, n := range ns {
				wg.Go(func() {
					for k := range 120 {
						op, scale := neighborOps[k/2%4], uint64([]int{1, 3, 40, 700, 3000, 40_000}[k%6])
						a, check := n.neighborCall(hoods[k%len(hoods)], op, k, func(from, to, edge int) int64 {
							switch op {
							case collectives.OpNeighborAllgather, collectives.OpNeighborAlltoall:
								from, to, edge = 0, 0, 0
							case collectives.OpNeighborAllgatherv:
								to, edge = 0, 0
							}
							return int64(rand.New(rand.NewPCG(uint64(k), uint64(from<<20+to<<10+edge))).Uint64N(scale + 1))
						})
						if f := n.Collective(n.ctx, a); f != nil {
							t.Errorf("call %d, %v, rank %d of %d: %+v", k, op, n.ctx.Rank, size, f)
							return
						}
						if err := check(); err != nil {
							t.Errorf("call %d, rank %d of %d: %v", k, n.ctx.Rank, size, err)
							return
						}
					}
				})
			}
			wg.Wait()
			return nil
		})
	}
}

// A table too long for a cell is read where it lies, too.
func TestAreaManyEdges(t *testing.T) {
	ns := areaJob(t, 2, nil)
	var edges [][2]int
	for range 800 {
		edges = append(edges, [2]int{0, 1})
	}
	h := newHood(2, append(edges, [2]int{1, 0}))
	checks := make([]func() error, 2)
	for r, f := range everywhere(t, ns, func(i int) (a *CollArgs) {
		a, checks[i] = ns[i].neighborCall(h, collectives.OpNeighborAlltoallv, 1, func(_, _, k int) int64 { return int64(k % 4) })
		return a
	}) {
		if f != nil {
			t.Fatalf("rank %d: %+v", r, f)
		}
		if err := checks[r](); err != nil {
			t.Fatal(err)
		}
	}
}

// Ranks far ahead of one that is no neighbor of theirs overwrite nothing that it
// may still look at: they sleep until it comes.
func TestAreaNeighborsAhead(t *testing.T) {
	const calls = 5 * shmcoll.Cells
	ns := areaJob(t, 3, nil)
	h := newHood(3, [][2]int{{0, 1}, {1, 0}, {2, 2}})
	done := make(chan error, 3*calls)
	run := func(n *node) {
		for k := range calls {
			a, check := n.neighborCall(h, collectives.OpNeighborAllgather, k, func(int, int, int) int64 { return int64(1 + k%2*3000) })
			if f := n.Collective(n.ctx, a); f != nil {
				done <- fmt.Errorf("call %d: %+v", k, f)
				continue
			}
			done <- check()
		}
	}
	go run(ns[0])
	go run(ns[1])
	ns[0].asleep(t)
	ns[1].asleep(t)
	go run(ns[2])
	for range 3 * calls {
		if err := soon(t, "neighbors", func() error { return <-done }); err != nil {
			t.Fatal(err)
		}
	}
}

// What ends an operation ends one that waits for those who read from this rank.
func TestAreaNeighborDies(t *testing.T) {
	for _, count := range []int64{1, 100_000} {
		ns := areaJob(t, 3, nil)
		h := newHood(3, [][2]int{{0, 1}, {1, 0}, {1, 2}})
		done := make(chan *fault.Fault, 3)
		for _, n := range ns[:2] { // rank 2 never reads
			go func() {
				a, _ := n.neighborCall(h, collectives.OpNeighborAllgather, 1, func(int, int, int) int64 { return count })
				f := n.Collective(n.ctx, a)
				for f == nil {
					f = n.Collective(n.ctx, n.call64(collectives.OpBarrier, nil, nil, 0, 0))
				}
				done <- f
			}()
		}
		ns[0].asleep(t)
		ns[1].asleep(t)
		for _, n := range ns[:2] {
			n.ProcFailed(proc(3), "was killed")
		}
		for range 2 {
			wantClass(t, "death", soon(t, "neighbors", func() *fault.Fault { return <-done }), fault.ProcFailed)
		}
	}
}

// TestAreaGatherv: blocks that are published and such that are sent, in one
// call, and lengths on which root and rank disagree.
func TestAreaGatherv(t *testing.T) {
	const size = 4
	ns := areaJob(t, size, nil)
	for k := range 60 {
		root, wrong := k%size, k == 59
		length := func(r int) int64 { return []int64{0, 1, 7, 900, 3000, 60_000}[(k+r*r)%6] }
		outs, at := make([][]uint64, size), make([]int64, size)
		faults := everywhere(t, ns, func(rank int) *CollArgs {
			in := make([]uint64, length(rank))
			for i := range in {
				in[i] = word64(k, rank, i)
			}
			a := ns[rank].call64(collectives.OpBarrier, in, nil, len(in), root)
			a.Args.Op, a.Alg = collectives.OpGatherv, algorithm(collectives.OpGatherv, "read")
			if rank == root {
				end := int64(0)
				for q := range size {
					at[q] = end + 1
					a.Args.Counts = append(a.Args.Counts, length(q))
					end = at[q] + length(q)
				}
				if outs[rank] = make([]uint64, end+1); wrong {
					a.Args.Counts[(root+1)%size]++
				}
				a.Args.Displs, a.Out = at, buf64(outs[rank])
			}
			return a
		})
		if wrong {
			wantClass(t, "root", faults[root], fault.Mismatch)
			break
		}
		for r, f := range faults {
			if f != nil {
				t.Fatalf("call %d, rank %d: %+v", k, r, f)
			}
			for i := range length(r) {
				if got := outs[root][at[r]+i]; got != word64(k, r, int(i)) {
					t.Fatalf("call %d: element %d of rank %d is %x", k, i, r, got)
				}
			}
		}
	}
}

// TestAreaBlocks: operations whose blocks only some ranks know, small and
// large ones, with gaps, in place and not.
func TestAreaBlocks(t *testing.T) {
	const size = 4
	ns := areaJob(t, size, nil)
	scatterv, err := selection.ByName(collectives.OpScatterv, "read")
	if err != nil {
		t.Fatal(err)
	}
	alltoallv, err := selection.ByName(collectives.OpAlltoallv, "read")
	if err != nil {
		t.Fatal(err)
	}
	for k := range 80 {
		scale := []int{1, 20, 200, 5000, 40_000}[k%5]
		block := func(from, to int) int64 {
			rnd := rand.New(rand.NewPCG(uint64(k), uint64(from*size+to)))
			return int64(rnd.IntN(scale))
		}
		inPlace := k%4 == 3
		if inPlace { // the same blocks come and go
			old := block
			block = func(from, to int) int64 { return old(min(from, to), max(from, to)) }
		}
		displs := func(n func(q int) int64) (counts, displs []int64, end int64) {
			for q := range size {
				end += int64(q % 2) // a gap
				counts, displs = append(counts, n(q)), append(displs, end)
				end += n(q)
			}
			return counts, displs, end
		}
		outs, root := make([][]uint64, size), k%size
		faults := everywhere(t, ns, func(rank int) *CollArgs {
			a := ns[rank].call64(collectives.OpBarrier, nil, nil, 0, root)
			a.Args.InPlace = inPlace
			var in []uint64
			if k%2 == 0 {
				a.Alg, a.Args.Op = scatterv, collectives.OpScatterv
				a.Args.InPlace = false
				outs[rank] = make([]uint64, block(root, rank))
				if rank == root {
					counts, at, end := displs(func(q int) int64 { return block(root, q) })
					in = make([]uint64, end)
					a.Args.Counts, a.Args.Displs = counts, at
				}
				a.Args.Count = int64(len(outs[rank]))
			} else {
				a.Alg, a.Args.Op = alltoallv, collectives.OpAlltoallv
				counts, at, end := displs(func(q int) int64 { return block(rank, q) })
				in = make([]uint64, end)
				a.Args.InCounts, a.Args.InDispls = counts, at
				counts, at, end = displs(func(q int) int64 { return block(q, rank) })
				a.Args.OutCounts, a.Args.OutDispls = counts, at
				if outs[rank] = in; !inPlace {
					outs[rank] = make([]uint64, end)
				}
			}
			for i := range in {
				in[i] = word64(k, rank, i)
			}
			a.In, a.Out = buf64(in), buf64(outs[rank])
			return a
		})
		for rank, f := range faults {
			if f != nil {
				t.Fatalf("call %d, rank %d: %+v", k, rank, f)
			}
			check := func(from int, got []uint64) {
				_, at, _ := displs(func(q int) int64 { return block(from, q) })
				for i, v := range got {
					if want := word64(k, from, int(at[rank])+i); v != want {
						t.Fatalf("call %d, rank %d: element %d from rank %d is %x, want %x", k, rank, i, from, v, want)
					}
				}
			}
			if k%2 == 0 {
				check(root, outs[rank])
				continue
			}
			counts, at, _ := displs(func(q int) int64 { return block(q, rank) })
			for q := range size {
				check(q, outs[rank][at[q]:][:counts[q]])
			}
		}
	}
}

// Ranks that disagree about a block are told.
func TestAreaBlockMismatch(t *testing.T) {
	for _, n := range []int64{3, 100_000} {
		ns := areaJob(t, 2, nil)
		faults := everywhere(t, ns, func(rank int) *CollArgs {
			a := ns[rank].call64(collectives.OpBarrier, make([]uint64, 2*n), make([]uint64, 2*n), 0, 0)
			a.Alg, _ = selection.ByName(collectives.OpAlltoallv, "read")
			a.Args.Op = collectives.OpAlltoallv
			a.Args.InCounts, a.Args.InDispls = []int64{n, n}, []int64{0, n}
			a.Args.OutCounts, a.Args.OutDispls = []int64{n, n - int64(rank)}, []int64{0, n}
			if rank == 1 {
				a.Args.OutCounts = []int64{n - 1, n}
			}
			return a
		})
		wantClass(t, "rank 1", faults[1], fault.Mismatch)
		if c := faults[0].Code(); c != fault.Aborted && c != fault.OK {
			t.Fatalf("rank 0: %+v", faults[0])
		}
	}
}

func TestAreaAllgatherv(t *testing.T) {
	ns := areaJob(t, 4, nil)
	counts, displs := []int64{3, 0, 40, 1}, []int64{50, 0, 5, 0}
	outs := make([][]uint64, len(ns))
	faults := everywhere(t, ns, func(i int) *CollArgs {
		in := make([]uint64, counts[i])
		for e := range in {
			in[e] = word64(1, i, e)
		}
		outs[i] = make([]uint64, 60)
		a := ns[i].call64(collectives.OpBarrier, in, outs[i], 0, 0)
		a.Args.Op, a.Args.Counts, a.Args.Displs = collectives.OpAllgatherv, counts, displs
		a.Alg, _ = selection.ByName(collectives.OpAllgatherv, "shared")
		return a
	})
	for r, f := range faults {
		if f != nil {
			t.Fatalf("rank %d: %+v", r, f)
		}
		for q, n := range counts {
			for e := range n {
				if got := outs[r][displs[q]+e]; got != word64(1, q, int(e)) {
					t.Fatalf("rank %d: element %d of rank %d is %x", r, e, q, got)
				}
			}
		}
	}
}

func algorithm(op collectives.Op, name string) *collectives.Algorithm {
	g, err := selection.ByName(op, name)
	if err != nil {
		panic("gompi: BUG: " + err.Error())
	}
	return g
}
