// SPDX-License-Identifier: Apache-2.0

package main

import "sort"

// partition cuts rows into consecutive blocks of about the same number of
// nonzeros: block r is the rows starts[r] to starts[r+1]. ptr is that of the
// whole matrix. A block holds at most the mean and the largest row; with more
// blocks than rows some are empty.
func partition(ptr []int, blocks int) (starts []int) {
	rows := len(ptr) - 1
	starts = make([]int, blocks+1)
	for r := 1; r < blocks; r++ {
		// In float64: the product may exceed 64 bits, and a row more or less
		// does no harm.
		ideal := float64(ptr[rows]) * float64(r) / float64(blocks)
		i := sort.Search(rows, func(i int) bool { return float64(ptr[i]) >= ideal })
		if i > 0 && ideal-float64(ptr[i-1]) < float64(ptr[i])-ideal {
			i--
		}
		starts[r] = i
	}
	starts[blocks] = rows
	return starts
}

// owner is the block that holds a row.
func owner(starts []int, row int) int {
	return sort.Search(len(starts)-1, func(r int) bool { return starts[r+1] > row })
}
