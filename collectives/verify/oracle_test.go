// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/internal/test/testlab"
)

// affine is the map x -> a*x+b; applying one after the other is associative
// and does not commute.
type affine struct{ a, b uint64 }

func after(l, r affine) affine { return affine{l.a * r.a, l.a*r.b + l.b} }

// datum is element i of rank r's contribution. Maps with a = 1 commute.
func datum(r int, i int64, commutative bool) affine {
	h := (uint64(r)*0x9e3779b97f4a7c15 ^ uint64(i+1)*0xd1342543de82ef95) * 0xbf58476d1ce4e5b9
	h ^= h >> 29
	if commutative {
		return affine{1, h}
	}
	return affine{h | 1, h >> 7}
}

// want is what the rank of args[r] must end with in Out, gaps being zero or, in
// place, what they were.
func want(alg *collectives.Algorithm, args []collectives.Args, r int) []affine {
	a := &args[r]
	if a.Remote > 0 {
		return interWant(alg, args, r)
	}
	out := make([]affine, a.OutLen())
	commutative := !alg.KeepsOrder(a)
	put := func(off, n int64, from int, first int64) {
		for i := range n {
			out[off+i] = datum(from, first+i, commutative)
		}
	}
	fold := func(ranks int, first int64) {
		for i := range out {
			for q := range ranks {
				x := datum(q, first+int64(i), commutative)
				if q > 0 {
					x = after(out[i], x)
				}
				out[i] = x
			}
		}
	}
	if a.InPlace && !a.OutInside() {
		put(a.Own(), a.InLen(), r, 0)
	}
	switch a.Op {
	case collectives.OpBcast:
		put(0, a.Count, a.Root, 0)
	case collectives.OpScatter:
		put(0, a.Count, a.Root, int64(r)*a.Count)
	case collectives.OpScatterv:
		put(0, a.Count, a.Root, args[a.Root].Displs[r])
	case collectives.OpGather, collectives.OpAllgather:
		for q := 0; q < a.Size && len(out) > 0; q++ {
			put(int64(q)*a.Count, a.Count, q, 0)
		}
	case collectives.OpAllgatherv, collectives.OpGatherv:
		for q := range a.Counts {
			put(a.Displs[q], a.Counts[q], q, 0)
		}
	case collectives.OpAlltoall:
		for q := range a.Size {
			put(int64(q)*a.Count, a.Count, q, int64(r)*a.Count)
		}
	case collectives.OpAlltoallv:
		for q := range a.Size {
			displs := args[q].InDispls
			if args[q].InPlace {
				displs = args[q].OutDispls
			}
			put(a.OutDispls[q], a.OutCounts[q], q, displs[r])
		}
	case collectives.OpReduce, collectives.OpAllreduce:
		fold(a.Size, 0)
	case collectives.OpReduceScatterBlock:
		fold(a.Size, int64(r)*a.Count)
	case collectives.OpReduceScatter:
		first := int64(0)
		for _, n := range a.Counts[:r] {
			first += n
		}
		fold(a.Size, first)
	case collectives.OpScan:
		fold(r+1, 0)
	case collectives.OpExscan:
		fold(r, 0)
	default:
		neighborhood(args, r, put)
	}
	return out
}

// neighborhood calls put for what a rank gets from its neighbours: it walks all
// edges of the group in the order of their destinations and takes for each the
// next source that fits.
func neighborhood(args []collectives.Args, r int, put func(off, n int64, from int, first int64)) {
	a := &args[r]
	used := make([]bool, len(a.Sources))
	for q := range args {
		for i, to := range args[q].Dests {
			if int(to) != r {
				continue
			}
			k := 0
			for used[k] || int(a.Sources[k]) != q {
				k++
			}
			used[k] = true
			n, first := a.Count, int64(0)
			if len(a.OutCounts) > 0 {
				n = a.OutCounts[k]
			}
			if displs := args[q].InDispls; len(displs) > 0 {
				first = displs[i]
			}
			put(a.OutDispls[k], n, q, first)
		}
	}
}

// against compares one case with the naive result.
func against(alg *collectives.Algorithm, c Case, seed uint64) error {
	first := c.args(alg.Op, 0)
	commutative := !alg.KeepsOrder(&first)
	contribute := func(r int, n int64) []affine {
		x := make([]affine, n)
		for i := range x {
			x[i] = datum(r, int64(i), commutative)
		}
		return x
	}
	outs, err := interpret(alg, c, seed, contribute, after)
	if err != nil {
		return err
	}
	args := make([]collectives.Args, c.ranks())
	for r := range args {
		args[r] = c.args(alg.Op, r)
	}
	for r, got := range outs {
		for i, w := range want(alg, args, r) {
			if got[i] != w {
				return fmt.Errorf("%v: %v: rank %d ends with a wrong element %d", alg, c, r, i)
			}
		}
	}
	return nil
}

// draw makes a case that the algorithm admits.
func draw(g *collectives.Algorithm, rng *rand.Rand, size int, count int64) Case {
	if g.Inter {
		return drawInter(g.Op, rng, size, count)
	}
	if g.PowerOfTwo {
		for size&(size-1) != 0 { // down to the next power of two
			size &= size - 1
		}
	}
	if g.TwoLevel {
		size = max(3, size)
	}
	c := Case{Size: size, Root: rng.IntN(size), Count: count}
	if g.TwoLevel {
		all := layouts(size)
		c.Nodes = all[rng.IntN(len(all))]
	}
	if rng.IntN(2) == 0 {
		c.Segment = 1 + rng.Int64N(count+2)
	}
	if rng.IntN(2) == 0 {
		mask := rng.Uint64()
		c.InPlace = func(r int) bool { return mask>>(r%64)&1 == 1 }
	}
	c.Counts = make([]int64, size)
	for i := range c.Counts {
		c.Counts[i] = rng.Int64N(count + 1)
	}
	salt := rng.Uint64()
	c.Layout = func(rank int, counts []int64) []int64 {
		rng := rand.New(rand.NewPCG(salt, uint64(rank)))
		displs := make([]int64, len(counts))
		at := rng.Int64N(3)
		for _, i := range rng.Perm(len(counts)) {
			displs[i] = at
			at += counts[i] + rng.Int64N(2)
		}
		return displs
	}
	inPlace := c.InPlace != nil
	c.Block = func(from, to, k int) int64 {
		if inPlace && from > to { // the blocks of a pair are equal
			from, to = to, from
		}
		return int64((uint64(from+2)*salt + uint64(to+2)*(salt>>32) + uint64(k)) % uint64(count/4+2))
	}
	graph := digraph(rng, size, 1+rng.IntN(4))
	if rng.IntN(4) == 0 {
		graph = line(size, rng.IntN(2) == 0)
	}
	c.Dests, c.Sources = graph.Dests, graph.Sources
	return c
}

func TestAgainstOracle(t *testing.T) {
	rounds := testlab.Rounds(40, 200)
	for k, g := range selection.All() {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(7, uint64(k)))
			for i := range rounds {
				c := draw(g, rng, 1+rng.IntN(40), rng.Int64N(60))
				if err := against(g, c, uint64(i)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// FuzzCase holds interpreter and verifier against the naive result for any
// size, root, counts, layout and order of progress.
func FuzzCase(f *testing.F) {
	algs := selection.All()
	for i := range algs {
		f.Add(uint8(i), uint8(5+i%20), uint8(i%40*3), uint64(i))
	}
	f.Fuzz(func(t *testing.T, alg, size, count uint8, seed uint64) {
		g := algs[int(alg)%len(algs)]
		c := draw(g, rand.New(rand.NewPCG(seed, 2)), 1+int(size)%80, int64(count))
		if err := against(g, c, seed); err != nil {
			t.Error(err)
		}
		if err := Prove(g, c); err != nil {
			t.Error(err)
		}
	})
}

// Floating-point sums have the same bits on all ranks, in whatever order the
// messages arrive.
func TestSameBits(t *testing.T) {
	contribute := func(r int, n int64) []float64 {
		rng := rand.New(rand.NewPCG(uint64(r), 3))
		x := make([]float64, n)
		for i := range x {
			x[i] = rng.NormFloat64() * math.Exp(20*rng.NormFloat64())
		}
		return x
	}
	add := func(l, r float64) float64 { return l + r }
	for _, g := range selection.All() {
		if g.Op != collectives.OpAllreduce {
			continue
		}
		for size := 2; size <= 17; size++ {
			c := Case{Size: size, Count: 37}
			switch {
			case g.Inter:
				c.Remote = 1 + size%4
			case g.TwoLevel && size == 2:
				continue
			case g.TwoLevel:
				c.Nodes = layouts(size)[0]
			}
			var first []float64
			for seed := range uint64(4) {
				outs, err := interpret(g, c, seed, contribute, add)
				if err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = outs[0]
				}
				for r, x := range outs[:size] {
					for i := range x {
						if math.Float64bits(x[i]) != math.Float64bits(first[i]) {
							t.Fatalf("%v: size %d: element %d of rank %d is %v, elsewhere %v", g, size, i, r, x[i], first[i])
						}
					}
				}
			}
		}
	}
}
