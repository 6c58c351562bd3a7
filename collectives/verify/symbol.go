// SPDX-License-Identifier: Apache-2.0

package verify

// symbol names the symbolic value of one element: 0 is undefined, others index
// symbols. Equal expressions have equal names.
type symbol int32

// expr is an element of a rank's contribution, or two expressions combined.
type expr struct {
	left, right symbol // 0 for a contribution
	elem        int64  // the index of the element in its contribution
	lo, hi      int32  // the lowest and highest rank
	// ordered: left to right it contains each rank of lo..hi once, in order.
	ordered bool
}

// symbols is the table of all expressions of one verification.
type symbols struct {
	exprs  []expr
	known  map[uint64]symbol // of two combined
	first  []symbol          // the name of a rank's first element
	leaves []int64           // scratch of complete
}

// reset forgets everything and names the contributions: lens[r] elements by
// rank r.
func (t *symbols) reset(lens []int64) {
	t.exprs = append(t.exprs[:0], expr{})
	t.first = t.first[:0]
	if t.known == nil {
		t.known = make(map[uint64]symbol)
	}
	clear(t.known)
	for r, n := range lens {
		t.first = append(t.first, symbol(len(t.exprs)))
		for i := range n {
			t.exprs = append(t.exprs, expr{elem: i, lo: int32(r), hi: int32(r), ordered: true})
		}
	}
}

// leaf names element i of the contribution of rank r.
func (t *symbols) leaf(r int, i int64) symbol { return t.first[r] + symbol(i) }

// join names l op r. It returns 0 if they are different elements.
func (t *symbols) join(l, r symbol) symbol {
	key := uint64(l)<<32 | uint64(r)
	if s, ok := t.known[key]; ok {
		return s
	}
	a, b := &t.exprs[l], &t.exprs[r]
	if a.elem != b.elem {
		return 0
	}
	s := symbol(len(t.exprs))
	t.exprs = append(t.exprs, expr{
		left: l, right: r, elem: a.elem,
		lo: min(a.lo, b.lo), hi: max(a.hi, b.hi),
		ordered: a.ordered && b.ordered && a.hi+1 == b.lo,
	})
	t.known[key] = s
	return s
}

// complete reports whether s combines element i of each rank first..first+size-1
// exactly once, in this order unless the operation commutes.
func (t *symbols) complete(s symbol, i int64, first, size int, commutative bool) bool {
	e := &t.exprs[s]
	if s == 0 || e.elem != i || int(e.lo) != first || int(e.hi) != first+size-1 {
		return false
	}
	if e.ordered {
		return true
	}
	if !commutative {
		return false
	}
	t.leaves = t.leaves[:0]
	for range size {
		t.leaves = append(t.leaves, 0)
	}
	total := t.count(s, first, size)
	for _, n := range t.leaves {
		if n != 1 {
			return false
		}
	}
	return total == size
}

// count adds the contributions in s to leaves, that of rank first to the first,
// and returns their number. It stops beyond limit, which a wrong expression may
// exceed without bound.
func (t *symbols) count(s symbol, first, limit int) int {
	e := &t.exprs[s]
	if e.left == 0 {
		t.leaves[int(e.lo)-first]++
		return 1
	}
	n := t.count(e.left, first, limit)
	if n <= limit {
		n += t.count(e.right, first, limit-n)
	}
	return n
}
