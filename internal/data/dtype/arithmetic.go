// SPDX-License-Identifier: Apache-2.0

package dtype

import "math/bits"

// calc computes with int64 and records whether a result did not fit.
type calc struct{ over bool }

func (c *calc) add(a, b int64) int64 {
	s := a + b
	if (a < 0) == (b < 0) && (s < 0) != (a < 0) {
		c.over = true
	}
	return s
}

func (c *calc) sub(a, b int64) int64 {
	d := a - b
	if (a < 0) != (b < 0) && (d < 0) != (a < 0) {
		c.over = true
	}
	return d
}

func (c *calc) mul(a, b int64) int64 {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if negative := (a < 0) != (b < 0); hi != 0 || lo > 1<<63 || lo == 1<<63 && !negative {
		c.over = true
	}
	return a * b
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

// roundUp returns the least multiple of unit that is not below a. a must not be negative.
func (c *calc) roundUp(a, unit int64) int64 {
	if r := a % unit; r != 0 {
		return c.add(a, unit-r)
	}
	return a
}

// item is a part of a type under construction.
type item struct {
	placed
	bounds bounds
}

// one returns an element of t as an item.
func one(t *Type) item {
	it := item{bounds: bounds{known: true, ub: t.Size}}
	if t.derived != nil {
		it.bounds = t.derived.bounds
	}
	switch {
	case t.layout != nil:
		it.placed = placed{t.layout.at, t.layout.node}
	case t.Size > 0:
		it.placed = placed{0, newBlock(t.Size)}
	}
	return it
}

// moved returns it at a displacement.
func (c *calc) moved(it item, by int64) item {
	if !it.bounds.known {
		return it
	}
	it.bounds.lb, it.bounds.ub = c.add(it.bounds.lb, by), c.add(it.bounds.ub, by)
	it.at = c.add(it.at, by)
	if it.n != nil {
		c.add(it.at, it.n.lo)
		c.add(it.at, it.n.hi)
	}
	return it
}

// repeated returns count copies of it, stride bytes apart.
func (c *calc) repeated(it item, count, stride int64) item {
	if count == 0 || !it.bounds.known {
		return item{}
	}
	last := c.mul(count-1, stride)
	it.bounds.lb = c.add(it.bounds.lb, min(last, 0))
	it.bounds.ub = c.add(it.bounds.ub, max(last, 0))
	if it.n == nil {
		return it
	}
	c.mul(count, it.n.size)
	lo, hi := c.add(it.n.lo, min(last, 0)), c.add(it.n.hi, max(last, 0))
	c.sub(c.add(it.at, hi), c.add(it.at, lo))
	c.sub(hi, lo)
	if !c.over {
		it.placed = repeat(count, stride, it.placed)
	}
	return it
}

// joined returns all items as one, packed in their order.
func (c *calc) joined(its []item) item {
	var all item
	var size int64
	lo, hi := int64(0), int64(0)
	ps := make([]placed, 0, len(its))
	for _, it := range its {
		all.bounds = all.bounds.with(it.bounds)
		if it.n != nil {
			size = c.add(size, it.n.size)
			lo, hi = min(lo, it.at+it.n.lo), max(hi, it.at+it.n.hi)
			ps = append(ps, it.placed)
		}
	}
	c.sub(hi, lo)
	if !c.over {
		all.placed = list(ps)
	}
	return all
}

// with returns the bounds of the blocks of b and o together.
func (b bounds) with(o bounds) bounds {
	switch {
	case !o.known:
		return b
	case !b.known:
		return o
	}
	switch {
	case b.lbSet == o.lbSet:
		b.lb = min(b.lb, o.lb)
	case o.lbSet:
		b.lb, b.lbSet = o.lb, true
	}
	switch {
	case b.ubSet == o.ubSet:
		b.ub = max(b.ub, o.ub)
	case o.ubSet:
		b.ub, b.ubSet = o.ub, true
	}
	return b
}
