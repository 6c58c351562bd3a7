// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sort"

	"gompi/mam"
)

// partition says which rows each rank has: rank r the rows starts[r] to starts[r+1],
// consecutive ones with about the same number of nonzeros. lengths is how many each row
// has. A rank has at most the mean and the largest row; with more ranks than rows some
// have none.
func partition(lengths []int, ranks int) (starts []int, err error) {
	rows, err := mam.Rows(lengths).Over(ranks)
	if err != nil {
		return nil, err
	}
	starts = make([]int, ranks+1)
	for r := range ranks {
		starts[r+1] = starts[r] + rows.Count(r)
	}
	return starts, nil
}

// owner is the rank that has a row.
func owner(starts []int, row int) int {
	return sort.Search(len(starts)-1, func(r int) bool { return starts[r+1] > row })
}
