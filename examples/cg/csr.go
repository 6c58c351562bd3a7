// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// csr is a sparse matrix, or a block of its rows, stored by rows: row i has
// the values val[ptr[i]:ptr[i+1]] in the columns col[ptr[i]:ptr[i+1]], which
// ascend.
type csr struct {
	ptr []int
	col []int32
	val []float64
}

func (a *csr) rows() int { return len(a.ptr) - 1 }

// entry is one line of a file: indices from 0.
type entry struct {
	row, col int32
	val      float64
}

// doubled is the error of newCSR about two entries in one place.
type doubled struct{ row, col int32 }

func (d doubled) Error() string {
	return fmt.Sprintf("entry (%d, %d) appears twice", d.row+1, d.col+1)
}

// newCSR sorts entries into n rows. With mirror, an entry off the diagonal
// stands for its mirror image too.
func newCSR(n int, entries []entry, mirror bool) (*csr, error) {
	a := &csr{ptr: make([]int, n+1)}
	both := func(e entry) bool { return mirror && e.row != e.col }
	for _, e := range entries {
		a.ptr[e.row+1]++
		if both(e) {
			a.ptr[e.col+1]++
		}
	}
	for i := range n {
		a.ptr[i+1] += a.ptr[i]
	}
	a.col, a.val = make([]int32, a.ptr[n]), make([]float64, a.ptr[n])
	next := append([]int(nil), a.ptr[:n]...)
	put := func(row, col int32, v float64) {
		k := next[row]
		a.col[k], a.val[k] = col, v
		next[row]++
	}
	for _, e := range entries {
		put(e.row, e.col, e.val)
		if both(e) {
			put(e.col, e.row, e.val)
		}
	}
	for i := range n {
		row := a.row(i)
		// A file in column order leaves the rows in order.
		if !slices.IsSorted(row.col) {
			sort.Sort(row)
		}
		for k := 1; k < len(row.col); k++ {
			if row.col[k] == row.col[k-1] {
				return nil, doubled{int32(i), row.col[k]}
			}
		}
	}
	return a, nil
}

// row is a view of one row, to be sorted by columns or searched.
type row struct {
	col []int32
	val []float64
}

func (a *csr) row(i int) row {
	lo, hi := a.ptr[i], a.ptr[i+1]
	return row{a.col[lo:hi], a.val[lo:hi]}
}

func (r row) Len() int           { return len(r.col) }
func (r row) Less(i, j int) bool { return r.col[i] < r.col[j] }
func (r row) Swap(i, j int) {
	r.col[i], r.col[j] = r.col[j], r.col[i]
	r.val[i], r.val[j] = r.val[j], r.val[i]
}

// at is the value stored in a column, 0 if nothing is stored there.
func (r row) at(col int32) float64 {
	k := sort.Search(len(r.col), func(k int) bool { return r.col[k] >= col })
	if k < len(r.col) && r.col[k] == col {
		return r.val[k]
	}
	return 0
}

// asymmetric finds a pair of entries that differ by more than rounding in the
// file's decimals.
func (a *csr) asymmetric() (i, j int, found bool) {
	const rounding = 1e-10
	for i := range a.rows() {
		r := a.row(i)
		for k, j := range r.col {
			v, w := r.val[k], a.row(int(j)).at(int32(i))
			if math.Abs(v-w) > rounding*max(math.Abs(v), math.Abs(w)) {
				return i, int(j), true
			}
		}
	}
	return 0, 0, false
}

// lengths is how many values each row has.
func (a *csr) lengths() []int {
	n := make([]int, a.rows())
	for i := range n {
		n[i] = a.ptr[i+1] - a.ptr[i]
	}
	return n
}

// pointers is the ptr of rows with so many values.
func pointers(lengths []int) []int {
	ptr := make([]int, len(lengths)+1)
	for i, n := range lengths {
		ptr[i+1] = ptr[i] + n
	}
	return ptr
}

// span is the rows lo <= i < hi.
type span struct{ lo, hi int }

// mul computes y = A v for the rows of the spans.
func (a *csr) mul(rows []span, v, y []float64) {
	for _, s := range rows {
		for i := s.lo; i < s.hi; i++ {
			lo, hi := a.ptr[i], a.ptr[i+1]
			col, val := a.col[lo:hi], a.val[lo:hi]
			val = val[:len(col)]
			sum := 0.0
			for k, c := range col {
				sum += val[k] * v[c]
			}
			y[i] = sum
		}
	}
}

// rowSums is A times the vector of ones.
func (a *csr) rowSums() []float64 {
	sums := make([]float64, a.rows())
	for i := range sums {
		for _, v := range a.row(i).val {
			sums[i] += v
		}
	}
	return sums
}

// diagonal returns the diagonal of a block whose row i has its diagonal entry
// in column first+i.
func (a *csr) diagonal(first int) []float64 {
	d := make([]float64, a.rows())
	for i := range d {
		d[i] = a.row(i).at(int32(first + i))
	}
	return d
}
