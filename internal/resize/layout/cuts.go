// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"iter"
	"math/bits"
	"sort"
)

// cuts is a split with the elements in order: the first element of each rank, and then the
// number of elements.
type cuts []int64

func (s cuts) Ranks() int                  { return len(s) - 1 }
func (s cuts) Elems() int64                { return s[len(s)-1] }
func (s cuts) Count(rank int) int64        { return s[rank+1] - s[rank] }
func (s cuts) Runs(rank int) iter.Seq[Run] { return singleRun(s[rank], s.Count(rank)) }

func (s cuts) Locate(i int64) (rank int, local, n int64) {
	rank = sort.Search(len(s)-1, func(r int) bool { return s[r+1] > i })
	return rank, i - s[rank], s[rank+1] - i
}

// cutsOfCounts returns the split with these counts.
func cutsOfCounts(counts []int64) cuts {
	s := make(cuts, 1, len(counts)+1)
	for _, n := range counts {
		s = append(s, s[len(s)-1]+n)
	}
	return s
}

// proportion returns n*a/all, rounded down. a is at most all.
func proportion(n, a, all int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(a))
	q, _ := bits.Div64(hi, lo, uint64(all))
	return int64(q)
}

// weighted returns the split in proportion to weights of ranks. If there are more ranks than
// weights, the weights repeat. If all weights are 0, the split is that of block.
func weighted(n int64, weights []int64, ranks int) Split {
	// Division by the common divisor keeps the sums small for any number of ranks.
	divisor, largest := int64(0), int64(0)
	for _, w := range weights {
		divisor, largest = gcd(divisor, w), max(largest, w)
	}
	shift := 0
	for largest/divisor>>shift > MaxElems/MaxRanks {
		shift++
	}
	of := func(rank int) int64 { return weights[rank%len(weights)] / divisor >> shift }
	all := int64(0)
	for r := range ranks {
		all += of(r)
	}
	if all == 0 {
		return block{n, ranks}
	}
	s, sum := make(cuts, 1, ranks+1), int64(0)
	for r := range ranks {
		sum += of(r)
		s = append(s, proportion(n, sum, all))
	}
	return s
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// rowCuts divides rows so that the rows of each rank have about the same weight. Rank r begins
// at the first row with at least its share of the weight before it. If all weights are 0, the
// rows are divided as block does.
func rowCuts(weights []int64, ranks int) cuts {
	n, all := len(weights), int64(0)
	for _, w := range weights {
		all += w
	}
	s := make(cuts, ranks+1)
	row, before := 0, int64(0)
	for r := range ranks {
		if all == 0 {
			s[r] = block{int64(n), ranks}.start(r)
			continue
		}
		for want := proportion(all, int64(r), int64(ranks)); row < n && before < want; row++ {
			before += weights[row]
		}
		s[r] = int64(row)
	}
	s[ranks] = int64(n)
	return s
}

func rows(weights []int64, ranks int) Split { return rowCuts(weights, ranks) }

// entries is rows for elements that are entries of rows: a row has as many as its weight.
func entries(weights []int64, ranks int) Split {
	s := rowCuts(weights, ranks)
	row, before := int64(0), int64(0)
	for r, cut := range s {
		for ; row < cut; row++ {
			before += weights[row]
		}
		s[r] = before
	}
	return s
}
