// SPDX-License-Identifier: Apache-2.0

package dtype

import "slices"

// shape is the form of a node.
type shape uint8

const (
	shapeBlock  shape = iota // size contiguous bytes
	shapeLoop                // count children, stride bytes apart
	shapeBlocks              // a list of blocks
	shapeList                // a list of nodes
)

// node is a tree of the blocks of an element, in packed order, the first block at 0. Loops stay
// loops, so a vector or a subarray of any size is a few nodes. Lists are as long as the user's
// lists. A node is immutable.
type node struct {
	shape shape
	size  int64 // packed bytes, above 0
	// lo and hi hold all bytes of the node: lo <= 0 < hi.
	lo, hi int64

	count, stride int64 // of a loop
	child         *node

	blocks []block // of a list of blocks, with one more that marks the end
	each   int64   // common size of the blocks, 0 if they differ

	entries []entry // of a list of nodes
}

// block is a block of a list at position at. It holds the packed bytes from off on, up to the
// offset of the next block.
type block struct{ at, off int64 }

// entry is a node of a list. Its first packed byte is at off.
type entry struct {
	at, off int64
	n       *node
}

// placed is a node at a position. The zero value has no bytes.
type placed struct {
	at int64
	n  *node
}

func newBlock(size int64) *node { return &node{size: size, hi: size} }

// repeat returns count copies of p, stride bytes apart, as a loop or as a simpler node. count
// must be above 0, and p must have bytes.
func repeat(count, stride int64, p placed) placed {
	c := p.n
	switch {
	case count == 1:
		return p
	case c.shape == shapeBlock && stride == c.size:
		return placed{p.at, newBlock(count * c.size)}
	case c.shape == shapeLoop && stride == c.count*c.stride:
		count, stride, c = count*c.count, c.stride, c.child
	}
	last := (count - 1) * stride
	return placed{p.at, &node{
		shape:  shapeLoop,
		size:   count * c.size,
		count:  count,
		stride: stride,
		child:  c,
		lo:     c.lo + min(last, 0),
		hi:     c.hi + max(last, 0),
	}}
}

// same reports whether two nodes have the same blocks in the same order. It may report false
// for nodes that were made in different ways.
func (n *node) same(o *node) bool {
	if n == o {
		return true
	}
	if n.shape != o.shape || n.size != o.size || n.count != o.count || n.stride != o.stride || len(n.entries) != len(o.entries) || !slices.Equal(n.blocks, o.blocks) {
		return false
	}
	for i, p := range n.entries {
		q := o.entries[i]
		if p.at != q.at {
			return false
		}
		again := i > 0 && p.n == n.entries[i-1].n && q.n == o.entries[i-1].n // compared already
		if !again && !p.n.same(q.n) {
			return false
		}
	}
	return n.shape != shapeLoop || n.child.same(o.child)
}

// fewParts is the length up to which a list is merged into the list around it, where its
// blocks may adjoin others.
const fewParts = 16

// list returns one node for all of ps, which must have bytes. It may be simpler than a list.
func list(ps []placed) placed {
	flat := make([]placed, 0, len(ps))
	for _, p := range ps {
		flat = join(flat, p)
	}
	switch {
	case len(flat) == 0:
		return placed{}
	case len(flat) == 1:
		return flat[0]
	}
	if p, ok := regular(flat); ok {
		return p
	}
	n := &node{shape: shapeBlocks, each: flat[0].n.size}
	for _, p := range flat {
		if p.n.shape != shapeBlock {
			n.shape, n.each = shapeList, 0
			break
		}
		if p.n.size != n.each {
			n.each = 0
		}
	}
	n.fill(flat)
	return placed{flat[0].at, n}
}

// fill sets the entries of n to ps.
func (n *node) fill(ps []placed) {
	if n.shape == shapeBlocks {
		n.blocks = make([]block, 0, len(ps)+1)
	} else {
		n.entries = make([]entry, 0, len(ps))
	}
	for _, p := range ps {
		here := p.at - ps[0].at
		n.lo, n.hi = min(n.lo, here+p.n.lo), max(n.hi, here+p.n.hi)
		if n.shape == shapeBlocks {
			n.blocks = append(n.blocks, block{here, n.size})
		} else {
			n.entries = append(n.entries, entry{here, n.size, p.n})
		}
		n.size += p.n.size
	}
	if n.shape == shapeBlocks {
		n.blocks = append(n.blocks, block{0, n.size})
	}
}

// join appends p to a list. If p adjoins the last block, it makes that block longer.
func join(flat []placed, p placed) []placed {
	switch {
	case p.n.shape == shapeBlocks && len(p.n.blocks) <= fewParts:
		for i, b := range p.n.blocks[:len(p.n.blocks)-1] {
			flat = join(flat, placed{p.at + b.at, newBlock(p.n.blocks[i+1].off - b.off)})
		}
		return flat
	case p.n.shape == shapeList && len(p.n.entries) <= fewParts:
		for _, q := range p.n.entries {
			flat = join(flat, placed{p.at + q.at, q.n})
		}
		return flat
	}
	if len(flat) > 0 && p.n.shape == shapeBlock {
		last := &flat[len(flat)-1]
		if last.n.shape == shapeBlock && last.at+last.n.size == p.at {
			last.n = newBlock(last.n.size + p.n.size)
			return flat
		}
	}
	return append(flat, p)
}

// regular returns a loop for a list of equal nodes at equal distances.
func regular(ps []placed) (placed, bool) {
	first, stride := ps[0].n, ps[1].at-ps[0].at
	for i, p := range ps[1:] {
		same := p.n == first || p.n.shape == shapeBlock && first.shape == shapeBlock && p.n.size == first.size
		if !same || p.at-ps[i].at != stride {
			return placed{}, false
		}
	}
	return repeat(int64(len(ps)), stride, ps[0]), true
}
