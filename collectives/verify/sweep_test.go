// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"math/rand/v2"
	"slices"

	"gompi/collectives"
)

// maxSize is the largest group that the sweep proves.
const maxSize = 70

// sweep visits the cases of one group size that an algorithm claims to do: all
// roots, and for some of them all counts, the ways to be in place, and pieces.
// It stops at the first error.
func sweep(g *collectives.Algorithm, size int, check func(Case) error) error {
	switch {
	case g.PowerOfTwo && size&(size-1) != 0:
		return nil
	case g.TwoLevel:
		return sweepNodes(g, size, check)
	case g.Inter:
		return sweepInter(g, size, check)
	}
	switch g.Op {
	case collectives.OpBarrier:
		return check(Case{Size: size})
	case collectives.OpAllgatherv, collectives.OpReduceScatter, collectives.OpGatherv, collectives.OpScatterv:
		return sweepBlocks(g, size, check)
	case collectives.OpAlltoallv:
		return sweepPairs(size, check)
	case collectives.OpNeighborAllgather, collectives.OpNeighborAllgatherv, collectives.OpNeighborAlltoall, collectives.OpNeighborAlltoallv:
		return sweepGraphs(size, check)
	}
	counts := []int64{5, 0, 1, 2}
	switch g.Op {
	case collectives.OpBcast, collectives.OpReduce, collectives.OpAllreduce: // may be cut into a block per rank
		counts = []int64{int64(2*size + 1), 0, 1, 3, int64(size), int64(size - 1)}
		if size > 24 { // the longest not with every root
			counts[0], counts[4] = counts[4], counts[0]
		}
	}
	corners := []int{0, 1, size / 2, size - 1}
	for root := range size {
		corner := slices.Contains(corners, root)
		for i, n := range counts {
			if i > 0 && !corner && i != root%len(counts) {
				continue
			}
			c := Case{Size: size, Root: root, Count: n}
			if err := check(c); err != nil {
				return err
			}
			if !corner || g.Op == collectives.OpBcast || size > 24 && i > 0 && i != (size+root)%len(counts) {
				continue
			}
			for _, more := range variants(g, c) {
				if err := check(more); err != nil {
					return err
				}
			}
		}
		if !g.Op.Rooted() {
			break
		}
	}
	return nil
}

// variants are the forms of a case besides the plain one.
func variants(g *collectives.Algorithm, c Case) []Case {
	var cs []Case
	if g.SegmentBytes > 0 {
		for _, s := range []int64{1, 2, 7, c.Count, c.Count + 1} {
			v := c
			v.Segment = s
			cs = append(cs, v)
		}
	}
	if g.Op != collectives.OpBcast {
		all, some := c, c
		all.InPlace = func(int) bool { return true }
		some.InPlace = func(r int) bool { return r%3 == 1 }
		cs = append(cs, all)
		if !g.Op.Rooted() {
			cs = append(cs, some)
		}
	}
	return cs
}

// apart lays blocks in another order on each rank, with gaps.
func apart(rank int, counts []int64) []int64 {
	displs := make([]int64, len(counts))
	at := int64(rank % 3)
	for k := range counts {
		i := (rank + 2*len(counts) - 1 - k) % len(counts)
		displs[i] = at
		at += counts[i] + int64(k%2)
	}
	return displs
}

// sweepBlocks visits block lengths and layouts of forms with a count per rank,
// and all roots.
func sweepBlocks(g *collectives.Algorithm, size int, check func(Case) error) error {
	lengths := []func(i int) int64{
		func(i int) int64 { return int64(1 + i%3) },
		func(i int) int64 { return 1 },
		func(i int) int64 { return int64(i % 4) },
		func(i int) int64 { return 0 },
		func(i int) int64 { return int64(5 * max(0, i-size+2)) }, // the last alone
	}
	for k, length := range lengths {
		counts := make([]int64, size)
		for i := range counts {
			counts[i] = length(i)
		}
		for j, layout := range []func(int, []int64) []int64{nil, apart} {
			for l, place := range []func(int) bool{nil, func(r int) bool { return r%3 != 1 }} {
				for root := range size {
					// Every root has one of the forms.
					if root > 0 && root != size-1 && root%20 != 4*k+2*j+l {
						continue
					}
					if err := check(Case{Size: size, Root: root, Counts: counts, Layout: layout, InPlace: place}); err != nil {
						return err
					}
					if !g.Op.Rooted() {
						break
					}
				}
			}
		}
	}
	return nil
}

// sweepPairs visits block lengths and layouts of Alltoallv. In place the blocks
// of a pair are equal.
func sweepPairs(size int, check func(Case) error) error {
	some := func(r int) bool { return r%3 != 1 }
	all := func(int) bool { return true }
	cases := []Case{
		{Block: func(from, to, _ int) int64 { return int64(1 + (3*from+to)%4) }},
		{Block: func(from, to, _ int) int64 { return int64((from + 5*to) % 3) }, Layout: apart},
		{Block: func(from, to, _ int) int64 { return 0 }},
		{Block: func(from, to, _ int) int64 { return int64(max(0, to-from-size/2)) }, Layout: apart},
		{Block: func(from, to, _ int) int64 { return int64(1 + (from+to)%3) }, InPlace: all},
		{Block: func(from, to, _ int) int64 { return int64(from * to % 3) }, Layout: apart, InPlace: some},
		{Block: func(from, to, _ int) int64 { return int64((from ^ to) % 4) }, Layout: apart, InPlace: all},
	}
	for i, c := range cases {
		if size > 24 && i != 0 && (size+i)%4 != 0 {
			continue
		}
		c.Size = size
		if err := check(c); err != nil {
			return err
		}
	}
	return nil
}

// sweepGraphs visits neighbourhoods, block lengths and layouts.
func sweepGraphs(size int, check func(Case) error) error {
	rng := rand.New(rand.NewPCG(uint64(size), 5))
	for _, c := range []Case{
		line(size, true), line(size, false), digraph(rng, size, 3), digraph(rng, size, 1),
		{Size: size, Dests: make([][]int32, size), Sources: make([][]int32, size)},
	} {
		for _, layout := range []func(int, []int64) []int64{nil, apart} {
			c.Layout = layout
			for _, n := range []int64{2, 1, 0} {
				c.Count = n
				c.Counts = make([]int64, size)
				for i := range c.Counts {
					c.Counts[i] = n * int64(i%3)
				}
				c.Block = func(from, to, k int) int64 { return n * int64((5*(from+1)+3*(to+1)+k)%4) }
				if err := check(c); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// line makes neighbours of consecutive ranks, in the order before and after.
// If it closes to a ring, two ranks are joined twice and one rank to itself.
func line(size int, ring bool) Case {
	c := Case{Size: size}
	for r := range size {
		next, prev := int32(r+1), int32(r-1)
		if r == size-1 {
			next = -1
			if ring {
				next = 0
			}
		}
		if r == 0 && ring {
			prev = int32(size - 1)
		}
		c.Dests = append(c.Dests, []int32{prev, next})
		c.Sources = append(c.Sources, []int32{prev, next})
	}
	return c
}

// digraph draws about so many edges for each rank, among them double ones,
// loops and edges to nobody.
func digraph(rng *rand.Rand, size, degree int) Case {
	c := Case{Size: size, Dests: make([][]int32, size), Sources: make([][]int32, size)}
	for range degree * size {
		from := rng.IntN(size)
		to := (from + rng.IntN(min(3, size))) % size
		if rng.IntN(3) == 0 {
			to = rng.IntN(size)
		}
		c.Dests[from] = append(c.Dests[from], int32(to))
		c.Sources[to] = append(c.Sources[to], int32(from))
	}
	for r := range size {
		for _, list := range []*[]int32{&c.Dests[r], &c.Sources[r]} {
			if rng.IntN(3) == 0 {
				*list = append(*list, -1)
			}
			rng.Shuffle(len(*list), func(i, j int) { (*list)[i], (*list)[j] = (*list)[j], (*list)[i] })
		}
	}
	return c
}
