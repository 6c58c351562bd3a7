// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// Dims replaces the zero entries of dims so that the product of all entries is n.
// The new entries are as close to each other as possible, the larger ones first.
// More exactly: of all non-increasing sequences, Dims takes those with the least
// difference of the largest and the smallest entry, and of these the
// lexicographically least. It fails if an entry is negative or n is not a multiple
// of the product of the other entries.
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

// factors is the state of a search for non-increasing factors of a number.
type factors struct {
	divs   []int // divisors of the number, ascending
	now    []int // the sequence under trial
	best   []int // the best sequence so far
	spread int   // first entry of best less its last
}

// closest returns the k factors of n with the least spread, and of several such
// sequences the least.
func closest(n, k int) []int {
	f := &factors{divs: divisors(n), now: make([]int, k), best: make([]int, k), spread: n}
	root := sort.Search(n, func(r int) bool { return power(r+1, k, n) > n })
	for _, d := range f.divs {
		// The last entry is at most the root, so the spread grows with the
		// first entry.
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

// extend tries all sequences that continue at entry i with factors of n, the least
// first, and keeps the ones with a smaller spread.
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

// power returns d to the power of k, or some number above limit if that exceeds limit.
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

// divisors returns the divisors of n > 0 in ascending order.
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
