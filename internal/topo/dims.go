// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"fmt"
	"math"
	"slices"
)

// Dims fills in the zero entries of dims so that the product of all is n: as
// close to each other as can be, the larger ones first. It finds the least of
// all non-increasing sequences, in the order of their first, second, ...
// entries. It fails if an entry is negative or n is no multiple of the product
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
	found := make([]int, free)
	if !balanced(rest, rest, divisors(rest), found) {
		panic("gompi: BUG: a number is not the product of itself and ones")
	}
	for i := range dims {
		if dims[i] == 0 {
			dims[i], found = found[0], found[1:]
		}
	}
	return nil
}

// balanced finds the least non-increasing factors of n, none above most. divs
// holds the divisors of n, and maybe others, ascending.
func balanced(n, most int, divs, factors []int) bool {
	if len(factors) == 1 {
		factors[0] = n
		return n <= most
	}
	for _, d := range divs {
		if d > most || d > n {
			return false
		}
		if n%d != 0 || below(d, len(factors), n) {
			continue
		}
		factors[0] = d
		if balanced(n/d, d, divs, factors[1:]) {
			return true
		}
	}
	return false
}

// below reports whether d to the power of k is less than n.
func below(d, k, n int) bool {
	p := 1
	for range k {
		if p *= d; p >= n {
			return false
		}
		if d == 1 {
			break
		}
	}
	return true
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
