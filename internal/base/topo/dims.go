// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// Dims fills in the zero entries of dims so that the product of all is n: as
// close to each other as can be, the larger ones first: of all non-increasing
// sequences those whose largest and smallest entry differ least, and of these
// the least one. It fails if an entry is negative or n is no multiple of the product
// of the others.
func Dims(n int, dims []int) error {
	if n < 1 || n > math.MaxUint32 {
		return fmt.Errorf("a grid of %d processes", n)
	}
	free, rest := 0, n
	for i, d := range dims {
		switch {
		case d < 0:
			return fmt.Errorf("dimension %d is %d", i, d)
		case d == 0:
			free++
		case rest%d != 0:
			return fmt.Errorf("%d processes are no multiple of the dimensions given in %v", n, dims)
		default:
			rest /= d
		}
	}
	if free == 0 {
		if rest != 1 {
			return fmt.Errorf("%v are not the dimensions of %d processes", dims, n)
		}
		return nil
	}
	found := closest(rest, free)
	for i := range dims {
		if dims[i] == 0 {
			dims[i], found = found[0], found[1:]
		}
	}
	return nil
}

// factors looks for non-increasing factors of a number.
type factors struct {
	divs   []int // divisors of the number, ascending
	now    []int // what is being tried
	best   []int
	spread int // of best: its first entry less its last
}

// closest finds the k factors of n of the least spread, and the least sequence
// of those that have it.
func closest(n, k int) []int {
	f := &factors{divs: divisors(n), now: make([]int, k), best: make([]int, k), spread: n}
	root := sort.Search(n, func(r int) bool { return power(r+1, k, n) > n })
	for _, d := range f.divs {
		// The last entry is at most the root, so that the spread grows with
		// the first one.
		if d-root >= f.spread {
			break
		}
		if power(d, k, n) >= n {
			f.now[0] = d
			f.extend(n/d, 1)
		}
	}
	return f.best
}

// extend tries all sequences that go on from entry i with factors of n, the
// least first, and keeps those of a smaller spread.
func (f *factors) extend(n, i int) {
	first, rest := f.now[0], len(f.now)-i
	if rest == 0 {
		copy(f.best, f.now)
		f.spread = first - f.now[i-1]
		return
	}
	least := func() int { return max(1, first-f.spread+1) }
	if rest == 1 {
		if n >= least() && n <= f.now[i-1] {
			f.now[i] = n
			f.extend(1, i+1)
		}
		return
	}
	at, _ := slices.BinarySearch(f.divs, least())
	for _, d := range f.divs[at:] {
		if d > f.now[i-1] || power(least(), rest, n) > n {
			return
		}
		if n%d == 0 && d >= least() && power(d, rest, n) >= n {
			f.now[i] = d
			f.extend(n/d, i+1)
		}
	}
}

// power is d to the power of k, or more than limit if that is.
func power(d, k, limit int) int {
	p := 1
	for range k {
		if d < 2 {
			return d
		}
		if p > limit/d {
			return limit + 1
		}
		p *= d
	}
	return p
}

// divisors are those of n > 0, ascending.
func divisors(n int) []int {
	var low, high []int
	for d := 1; d <= n/d; d++ {
		if n%d != 0 {
			continue
		}
		low = append(low, d)
		if d != n/d {
			high = append(high, n/d)
		}
	}
	slices.Reverse(high)
	return append(low, high...)
}
