// SPDX-License-Identifier: Apache-2.0

// Package group is the algebra of process groups of MPI 4.1 section 7.3, on
// wire.Members. The work grows with the number of ranges of a group and not with the
// number of its ranks, wherever ranges can express the result. All functions are pure.
package group

import (
	"fmt"
	"slices"

	"gompi/internal/base/wire"
)

// Triplet names the ranks First, First+Stride, ... up to Last. Last itself need not
// be one of them. Stride is negative if Last is below First.
type Triplet struct{ First, Last, Stride int }

// Order is the result of Compare.
type Order uint8

// Results of Compare.
const (
	Unequal Order = iota
	Similar       // the same members in another order
	Ident         // the same members in the same order
)

// Compare compares two groups.
func Compare(a, b wire.Members) Order {
	switch {
	case a.Equal(b):
		return Ident
	case a.Len() != b.Len() || total(common(a, b)) != a.Len():
		return Unequal
	}
	return Similar
}

// Intersection returns the members of a that are in b, in the order of a.
func Intersection(a, b wire.Members) wire.Members { return pick(a, common(a, b)) }

// Difference returns the members of a that are not in b, in the order of a.
func Difference(a, b wire.Members) wire.Members { return pick(a, complement(a.Len(), common(a, b))) }

// Union returns the members of a, followed by the members of b that are not in a.
func Union(a, b wire.Members) wire.Members {
	var m wire.MembersBuilder
	for _, r := range a.Ranges() {
		m.Add(r)
	}
	for _, r := range Difference(b, a).Ranges() {
		m.Add(r)
	}
	return m.Members()
}

// Incl returns the members of a with the given ranks, in the order of ranks. The ranks
// must exist and be different.
func Incl(a wire.Members, ranks []int) (wire.Members, error) {
	if _, err := checkRanks(a.Len(), ranks); err != nil {
		return wire.Members{}, err
	}
	var m wire.MembersBuilder
	for _, i := range ranks {
		m.Add(wire.Range{First: a.At(i), Count: 1})
	}
	return m.Members(), nil
}

// Excl returns the members of a except those with the given ranks. The ranks must
// exist and be different.
func Excl(a wire.Members, ranks []int) (wire.Members, error) {
	out, err := checkRanks(a.Len(), ranks)
	if err != nil {
		return wire.Members{}, err
	}
	return pick(a, complement(a.Len(), out)), nil
}

// RangeIncl returns the members of a with the ranks of the triplets, in the order of
// the triplets. The ranks must exist and be different.
func RangeIncl(a wire.Members, ts []Triplet) (wire.Members, error) {
	if _, err := checkTriplets(a.Len(), ts); err != nil {
		return wire.Members{}, err
	}
	var m wire.MembersBuilder
	for _, t := range ts {
		appendRanks(&m, a, t.First, t.count(), t.Stride)
	}
	return m.Members(), nil
}

// RangeExcl returns the members of a except those with the ranks of the triplets. The
// ranks must exist and be different.
func RangeExcl(a wire.Members, ts []Triplet) (wire.Members, error) {
	out, err := checkTriplets(a.Len(), ts)
	if err != nil {
		return wire.Members{}, err
	}
	return pick(a, complement(a.Len(), out)), nil
}

// Translate returns the ranks in b of the members of a with the given ranks. A member
// that is not in b has -1. The given ranks must exist.
func Translate(a wire.Members, ranks []int, b wire.Members) ([]int, error) {
	out := make([]int, len(ranks))
	for i, r := range ranks {
		if r < 0 || r >= a.Len() {
			return nil, fmt.Errorf("rank %d of %d", r, a.Len())
		}
		out[i] = b.Index(a.At(r))
	}
	return out, nil
}

// count returns the number of ranks. The bound keeps the difference in range.
func (t Triplet) count() int { return (max(t.Last, -1<<62)-t.First)/t.Stride + 1 }

// checkTriplets checks triplets for a group of n ranks and returns their ranks.
func checkTriplets(n int, ts []Triplet) ([]span, error) {
	spans := make([]span, 0, len(ts))
	for _, t := range ts {
		switch {
		case t.First < 0 || t.First >= n:
			return nil, fmt.Errorf("rank %d of %d", t.First, n)
		case t.Stride == 0:
			return nil, fmt.Errorf("stride 0 from rank %d to %d", t.First, t.Last)
		case (t.Last < t.First) != (t.Stride < 0) && t.Last != t.First:
			return nil, fmt.Errorf("no rank lies between %d and %d with stride %d", t.First, t.Last, t.Stride)
		case t.Last < 0 || t.Last >= n:
			// The last rank of the triplet may still exist.
			if last := t.First + (t.count()-1)*t.Stride; last < 0 || last >= n {
				return nil, fmt.Errorf("rank %d of %d", last, n)
			}
		}
		spans = append(spans, ascending(t.First, t.count(), t.Stride))
	}
	return sorted(spans)
}

// checkRanks checks a list of ranks of a group of n and returns them as spans.
func checkRanks(n int, ranks []int) ([]span, error) {
	spans := make([]span, len(ranks))
	for i, r := range ranks {
		if r < 0 || r >= n {
			return nil, fmt.Errorf("rank %d of %d", r, n)
		}
		spans[i] = span{r, 1, 1}
	}
	return sorted(spans)
}

// common returns the ranks in a of the members that are also in b.
func common(a, b wire.Members) []span {
	if len(a.Ranges())*len(b.Ranges()) > min(a.Len(), b.Len()) {
		return commonOneByOne(a, b)
	}
	var spans []span
	for k, r := range a.Ranges() {
		for _, q := range b.Ranges() {
			if first, n, step := r.Common(q); n > 0 {
				spans = append(spans, span{a.Start(k) + first, n, step})
			}
		}
	}
	spans, err := sorted(spans)
	if err != nil {
		panic("gompi: BUG: a group holds a process twice")
	}
	return spans
}

// commonOneByOne is common for groups with about as many ranges as members. It looks
// up every member.
func commonOneByOne(a, b wire.Members) []span {
	var spans []span
	if a.Len() <= b.Len() {
		for i, p := range a.All() {
			if b.Index(p) >= 0 {
				spans = push(spans, i)
			}
		}
		return spans
	}
	var ranks []int
	for _, p := range b.All() {
		if i := a.Index(p); i >= 0 {
			ranks = append(ranks, i)
		}
	}
	slices.Sort(ranks)
	for _, i := range ranks {
		spans = push(spans, i)
	}
	return spans
}

// pick returns the members of a with the ranks of the ordered spans.
func pick(a wire.Members, spans []span) wire.Members {
	var m wire.MembersBuilder
	for _, s := range spans {
		appendRanks(&m, a, s.first, s.count, s.step)
	}
	return m.Members()
}

// appendRanks adds the members of a with the ranks first, first+step, ... to m.
func appendRanks(m *wire.MembersBuilder, a wire.Members, first, count, step int) {
	for count > 0 {
		k, at := a.Find(first)
		r := a.Ranges()[k]
		n := at/max(1, -step) + 1
		if step > 0 {
			n = (r.Count-1-at)/step + 1
		}
		n = min(n, count)
		m.Add(r.Sub(at, n, step))
		first, count = first+n*step, count-n
	}
}
