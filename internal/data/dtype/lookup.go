// SPDX-License-Identifier: Apache-2.0

package dtype

import "math"

// Span returns the range [lo, hi) of bytes that holds the packed bytes [off, off+n). The
// range is relative to the address of the first element. It is empty if n is 0.
func (t *Type) Span(off, n int64) (lo, hi int64) {
	switch {
	case n <= 0:
		return 0, 0
	case t.layout == nil:
		return off, off + n
	}
	l := t.layout
	lo, hi = loopSpan(l.node, l.extent, off, n)
	return l.at + lo, l.at + hi
}

// loopSpan is Span for children at a stride.
func loopSpan(c *node, stride, off, n int64) (lo, hi int64) {
	first, last := off/c.size, (off+n-1)/c.size
	head, tail := off-first*c.size, off+n-last*c.size
	if first == last {
		lo, hi = c.span(head, n)
		return first*stride + lo, first*stride + hi
	}
	lo, hi = math.MaxInt64, math.MinInt64
	cover := func(i int64, l, h int64) { lo, hi = min(lo, i*stride+l), max(hi, i*stride+h) }
	l, h := c.span(head, c.size-head)
	cover(first, l, h)
	l, h = c.span(0, tail)
	cover(last, l, h)
	if last-first > 1 {
		cover(first+1, c.lo, c.hi)
		cover(last-1, c.lo, c.hi)
	}
	return lo, hi
}

// span is Span for one node.
func (n *node) span(off, length int64) (lo, hi int64) {
	if off == 0 && length == n.size {
		return n.lo, n.hi
	}
	switch n.shape {
	case shapeBlock:
		return off, off + length
	case shapeLoop:
		return loopSpan(n.child, n.stride, off, length)
	}
	lo, hi = math.MaxInt64, math.MinInt64
	for end := off + length; off < end; {
		at, size, i, r := n.seek(off)
		k := min(size-r, end-off)
		l, h := r, r+k
		if n.shape == shapeList {
			l, h = n.entries[i].n.span(r, k)
		}
		lo, hi = min(lo, at+l), max(hi, at+h)
		off += k
	}
	return lo, hi
}

// seek returns the item of a list that holds packed byte off: its position and size, its
// index, and the offset of the byte in it.
func (n *node) seek(off int64) (at, size int64, i int, r int64) {
	if n.shape == shapeBlocks {
		if n.each != 0 {
			i = int(off / n.each)
		} else {
			lo, hi := 0, len(n.blocks)-1
			for hi-lo > 1 {
				if mid := int(uint(lo+hi) / 2); n.blocks[mid].off <= off {
					lo = mid
				} else {
					hi = mid
				}
			}
			i = lo
		}
		b := n.blocks[i]
		return b.at, n.blocks[i+1].off - b.off, i, off - b.off
	}
	lo, hi := 0, len(n.entries)
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) / 2); n.entries[mid].off <= off {
			lo = mid
		} else {
			hi = mid
		}
	}
	p := n.entries[lo]
	return p.at, p.n.size, lo, off - p.off
}

// Block returns the longest contiguous memory that holds packed bytes from off on, at most n:
// its position relative to the address of the first element, and its length.
func (t *Type) Block(off, n int64) (at, length int64) {
	switch {
	case n <= 0:
		return 0, 0
	case t.layout == nil:
		return off, n
	}
	at, length = t.blockAt(off)
	for length < n {
		next, more := t.blockAt(off + length)
		if next != at+length {
			return at, length
		}
		length += more
	}
	return at, n
}

// blockAt returns the position of packed byte off, and the number of bytes from there to the
// end of its block.
func (t *Type) blockAt(off int64) (at, length int64) {
	l := t.layout
	at, n, stride := l.at, l.node, l.extent
	if n.shape == shapeBlock && n.size == stride {
		return at + off, math.MaxInt64 - off
	}
	for {
		// Here n is the child of a loop.
		i := off / n.size
		at, off = at+i*stride, off-i*n.size
		for n.shape == shapeBlocks || n.shape == shapeList {
			here, size, i, r := n.seek(off)
			at, off = at+here, r
			if n.shape == shapeBlocks {
				return at + off, size - off
			}
			n = n.entries[i].n
		}
		if n.shape == shapeBlock {
			return at + off, n.size - off
		}
		stride, n = n.stride, n.child
	}
}
