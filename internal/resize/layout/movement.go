// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sort"
)

// runSplit is a split in which each rank has any runs.
type runSplit struct {
	n     int64
	ranks [][]Run
	all   []ownedRun // in ascending order
}

// ownedRun is a run, its rank, and the index of its first element on that rank.
type ownedRun struct {
	Run
	rank  int
	local int64
}

// newRunSplit checks that the runs cover all elements once, and that those of a rank are in
// ascending order.
func newRunSplit(n int64, ranks [][]Run) (*runSplit, error) {
	s := &runSplit{n: n, ranks: ranks}
	for rank, runs := range ranks {
		local := int64(0)
		for _, r := range runs {
			if r.Len <= 0 || r.At < 0 || r.At > n-r.Len {
				return nil, fmt.Errorf("rank %d of %d has a run %+v", rank, len(ranks), r)
			}
			s.all = append(s.all, ownedRun{r, rank, local})
			local += r.Len
		}
		if !slices.IsSortedFunc(runs, func(a, b Run) int { return cmp.Compare(a.At, b.At) }) {
			return nil, fmt.Errorf("the runs of rank %d of %d are not in ascending order", rank, len(ranks))
		}
	}
	slices.SortFunc(s.all, func(a, b ownedRun) int { return cmp.Compare(a.At, b.At) })
	next := int64(0)
	for _, p := range s.all {
		if p.At != next {
			return nil, fmt.Errorf("runs of %d ranks: element %d has no rank or several", len(ranks), min(p.At, next))
		}
		next += p.Len
	}
	if next != n {
		return nil, fmt.Errorf("runs of %d ranks: element %d has no rank", len(ranks), next)
	}
	return s, nil
}

func (s *runSplit) Ranks() int   { return len(s.ranks) }
func (s *runSplit) Elems() int64 { return s.n }

func (s *runSplit) Count(rank int) (n int64) {
	for _, r := range s.ranks[rank] {
		n += r.Len
	}
	return n
}

func (s *runSplit) Runs(rank int) iter.Seq[Run] { return slices.Values(s.ranks[rank]) }

func (s *runSplit) Locate(i int64) (rank int, local, n int64) {
	k := sort.Search(len(s.all), func(k int) bool { return s.all[k].At+s.all[k].Len > i })
	p := &s.all[k]
	return p.rank, p.local + i - p.At, p.At + p.Len - i
}

// leastMovement returns a split with the counts of fresh, in which as few elements as possible
// move. A rank that stays keeps the first of its elements, up to its new count. The remaining
// elements go, in ascending order, to ranks that have too few. free says that any rank may have
// the larger counts of fresh, as for blocks; then the ranks with the most elements get them.
func leastMovement(old Split, stay []int, fresh Split, free bool) *runSplit {
	ranks := fresh.Ranks()
	have, want := make([]int64, ranks), make([]int64, ranks)
	for d := range ranks {
		want[d] = fresh.Count(d)
		if d < len(stay) {
			have[d] = old.Count(stay[d])
		}
	}
	if free {
		order := make([]int, ranks)
		for d := range order {
			order[d] = d
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(have[b], have[a]) })
		sizes := slices.Clone(want)
		slices.SortFunc(sizes, func(a, b int64) int { return cmp.Compare(b, a) })
		for i, d := range order {
			want[d] = sizes[i]
		}
	}
	now := make([]int, old.Ranks()) // new rank of each old rank; -1: it leaves
	for s := range now {
		now[s] = slices.Index(stay, s)
	}
	got, runs := make([]int64, ranks), make([][]Run, ranks)
	var over []Run
	for s := range now {
		for r := range old.Runs(s) {
			keep := int64(0)
			if d := now[s]; d >= 0 {
				if keep = min(r.Len, want[d]-got[d]); keep > 0 {
					runs[d] = append(runs[d], Run{r.At, keep})
					got[d] += keep
				}
			}
			if keep < r.Len {
				over = append(over, Run{r.At + keep, r.Len - keep})
			}
		}
	}
	slices.SortFunc(over, func(a, b Run) int { return cmp.Compare(a.At, b.At) })
	for d := range ranks {
		for got[d] < want[d] {
			r := &over[0]
			n := min(r.Len, want[d]-got[d])
			runs[d] = append(runs[d], Run{r.At, n})
			got[d] += n
			if r.At, r.Len = r.At+n, r.Len-n; r.Len == 0 {
				over = over[1:]
			}
		}
		runs[d] = joined(runs[d])
	}
	p, err := newRunSplit(fresh.Elems(), runs)
	if err != nil {
		panic("gompi: BUG: " + err.Error()) // each element was given once
	}
	return p
}

// joined sorts runs and merges adjoining ones.
func joined(runs []Run) []Run {
	slices.SortFunc(runs, func(a, b Run) int { return cmp.Compare(a.At, b.At) })
	out := runs[:0]
	for _, r := range runs {
		if k := len(out) - 1; k >= 0 && out[k].At+out[k].Len == r.At {
			out[k].Len += r.Len
			continue
		}
		out = append(out, r)
	}
	return out
}
