// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawMatrix makes a symmetric positive definite matrix: the diagonal
// outweighs its row.
func drawMatrix(t *rapid.T) *csr {
	n := rapid.IntRange(1, 40).Draw(t, "n")
	var entries []entry
	weight := make([]float64, n)
	for i := range n {
		weight[i] = 1
	}
	for i := range n {
		for _, j := range rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, min(n, 6), rapid.ID[int]).Draw(t, "columns") {
			if j < i {
				v := float64(rapid.IntRange(-8, 8).Draw(t, "v"))
				entries = append(entries, entry{int32(i), int32(j), v})
				weight[i] += math.Abs(v)
				weight[j] += math.Abs(v)
			}
		}
	}
	for i, w := range weight {
		entries = append(entries, entry{int32(i), int32(i), w})
	}
	a, err := newCSR(n, entries, true)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestCSRHoldsEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "n")
		places := rapid.SliceOfDistinct(rapid.IntRange(0, n*n-1), rapid.ID[int]).Draw(t, "places")
		dense := make([]float64, n*n)
		var entries []entry
		for k, p := range places {
			dense[p] = float64(k + 1)
			entries = append(entries, entry{int32(p / n), int32(p % n), dense[p]})
		}
		a, err := newCSR(n, entries, false)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.val) != len(places) {
			t.Fatalf("%d values of %d entries", len(a.val), len(places))
		}
		for i := range n {
			if !slices.IsSorted(a.row(i).col) {
				t.Fatalf("row %d: columns %v", i, a.row(i).col)
			}
			for j := range n {
				if got := a.row(i).at(int32(j)); got != dense[i*n+j] {
					t.Fatalf("(%d, %d) is %g, want %g", i, j, got, dense[i*n+j])
				}
			}
		}
	})
}

func TestPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOfN(rapid.IntRange(0, 50), 1, 60).Draw(t, "rows")
		blocks := rapid.IntRange(1, 80).Draw(t, "blocks")
		ptr, longest := pointers(lengths), slices.Max(lengths)
		starts, err := partition(lengths, blocks)
		if err != nil {
			t.Fatal(err)
		}
		if len(starts) != blocks+1 || starts[0] != 0 || starts[blocks] != len(lengths) || !slices.IsSorted(starts) {
			t.Fatalf("starts %v", starts)
		}
		mean := float64(ptr[len(lengths)]) / float64(blocks)
		for r := range blocks {
			if n := ptr[starts[r+1]] - ptr[starts[r]]; float64(n) > mean+float64(longest)+1e-9 {
				t.Fatalf("block %d has %d nonzeros, the mean is %g and the longest row %d: %v", r, n, mean, longest, starts)
			}
			for i := starts[r]; i < starts[r+1]; i++ {
				if got := owner(starts, i); got != r {
					t.Fatalf("row %d is in block %d, not %d: %v", i, r, got, starts)
				}
			}
		}
	})
}

// The blocks with their ghosts compute what the whole matrix does, to the bit:
// the order of a row is kept.
func TestPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawMatrix(t)
		n := a.rows()
		ranks := rapid.IntRange(1, 7).Draw(t, "ranks")
		starts, err := partition(a.lengths(), ranks)
		if err != nil {
			t.Fatal(err)
		}
		v, want := make([]float64, n), make([]float64, n)
		for i := range v {
			v[i] = 1 / float64(i+3)
		}
		a.mul([]span{{0, n}}, v, want)
		for rank := range ranks {
			lo, hi := starts[rank], starts[rank+1]
			b := &csr{pointers(a.lengths()[lo:hi]), slices.Clone(a.col[a.ptr[lo]:a.ptr[hi]]), a.val[a.ptr[lo]:a.ptr[hi]]}
			p := newPlan(starts, rank, b)
			checkPlan(t, p, b, starts, rank)
			local := make([]float64, p.length())
			copy(local, v[lo:hi])
			y := make([]float64, p.rows)
			b.mul(p.inner, local, y) // the ghosts have not come yet
			for i, g := range p.ghosts {
				local[p.rows+i] = v[g]
			}
			b.mul(p.border, local, y)
			if !slices.Equal(y, want[lo:hi]) {
				t.Fatalf("rank %d of %d: got %v, want %v", rank, ranks, y, want[lo:hi])
			}
		}
	})
}

func checkPlan(t *rapid.T, p *plan, b *csr, starts []int, rank int) {
	if p.rows != starts[rank+1]-starts[rank] {
		t.Fatalf("%d rows, starts %v, rank %d", p.rows, starts, rank)
	}
	used := make([]bool, len(p.ghosts))
	for _, c := range b.col {
		if int(c) >= p.rows {
			used[int(c)-p.rows] = true
		}
	}
	if slices.Contains(used, false) {
		t.Fatalf("a ghost that nobody needs: %v %v", p.ghosts, used)
	}
	at := 0
	for k, r := range p.recvs {
		if r.lo != at || r.hi <= r.lo || r.rank == rank || k > 0 && r.rank <= p.recvs[k-1].rank {
			t.Fatalf("rank %d: parts %+v", rank, p.recvs)
		}
		for _, g := range p.ghosts[r.lo:r.hi] {
			if int(g) < starts[r.rank] || int(g) >= starts[r.rank+1] {
				t.Fatalf("ghost %d is not rank %d's: %v", g, r.rank, starts)
			}
		}
		at = r.hi
	}
	if at != len(p.ghosts) {
		t.Fatalf("parts %+v of %d ghosts", p.recvs, len(p.ghosts))
	}
	seen := make([]int, p.rows)
	for _, s := range append(slices.Clone(p.inner), p.border...) {
		for i := s.lo; i < s.hi; i++ {
			seen[i]++
		}
	}
	if slices.ContainsFunc(seen, func(n int) bool { return n != 1 }) {
		t.Fatalf("spans %v and %v of %d rows", p.inner, p.border, p.rows)
	}
}
