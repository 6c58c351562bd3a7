// SPDX-License-Identifier: Apache-2.0

package collectives

import "slices"

// maxSize is the largest group that the sweep proves.
const maxSize = 70

// rooted reports whether the root of an operation means anything.
func rooted(op Op) bool {
	return op == OpBcast || op == OpReduce || op == OpGather || op == OpScatter
}

// sweep visits the cases of one group size that an algorithm claims to do: all
// roots, and for some of them all counts, the ways to be in place, and pieces.
// It stops at the first error.
func sweep(g *Algorithm, size int, check func(Case) error) error {
	if g.PowerOfTwo && !isPowerOfTwo(size) {
		return nil
	}
	if g.Op == OpBarrier {
		return check(Case{Size: size})
	}
	if g.Op == OpAllgatherv {
		return sweepBlocks(size, check)
	}
	counts := []int64{5, 0, 1, 2}
	if g.Op == OpBcast || g.Op == OpReduce || g.Op == OpAllreduce { // may be cut into a block per rank
		counts = []int64{int64(2*size + 1), 0, 1, 3, int64(size), int64(size - 1)}
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
			if !corner || g.Op == OpBcast && g.SegmentBytes == 0 {
				continue
			}
			for _, more := range variants(g, c) {
				if err := check(more); err != nil {
					return err
				}
			}
		}
		if !rooted(g.Op) {
			break
		}
	}
	return nil
}

// variants are the forms of a case besides the plain one.
func variants(g *Algorithm, c Case) []Case {
	var cs []Case
	if g.SegmentBytes > 0 {
		for _, s := range []int64{1, 2, 7, c.Count, c.Count + 1} {
			v := c
			v.Segment = s
			cs = append(cs, v)
		}
	}
	if g.Op != OpBcast {
		all, some := c, c
		all.InPlace = func(int) bool { return true }
		some.InPlace = func(r int) bool { return r%3 == 1 }
		cs = append(cs, all)
		if !rooted(g.Op) {
			cs = append(cs, some)
		}
	}
	return cs
}

// sweepBlocks visits block lengths and layouts of the v-forms.
func sweepBlocks(size int, check func(Case) error) error {
	lengths := []func(i int) int64{
		func(i int) int64 { return 1 },
		func(i int) int64 { return int64(1 + i%3) },
		func(i int) int64 { return int64(i % 4) },
		func(i int) int64 { return 0 },
		func(i int) int64 { return int64(5 * max(0, i-size+2)) }, // the last alone
	}
	for _, length := range lengths {
		counts := make([]int64, size)
		for i := range counts {
			counts[i] = length(i)
		}
		// Each rank lays its blocks in another order, with gaps.
		apart := func(rank int) []int64 {
			displs := make([]int64, size)
			at := int64(rank % 3)
			for k := range size {
				i := (rank + size - 1 - k) % size
				displs[i] = at
				at += counts[i] + int64(k%2)
			}
			return displs
		}
		for _, displs := range []func(int) []int64{nil, apart} {
			for _, place := range []func(int) bool{nil, func(r int) bool { return r%3 != 1 }} {
				if err := check(Case{Size: size, Counts: counts, Displs: displs, InPlace: place}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
