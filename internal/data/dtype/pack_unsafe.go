// SPDX-License-Identifier: Apache-2.0

package dtype

// unsafe: a layout applies to memory of any Go type, given by its address. Addresses stay
// numbers until they are used, because a pointer beyond its object must not exist while the
// garbage collector runs.

import (
	"unsafe"

	"gompi/internal/host/mem"
)

// Pack copies the packed bytes [off, off+len(dst)) of the elements at base to dst. It reads as
// many elements as that takes; all of them must be memory.
func (t *Type) Pack(dst []byte, base unsafe.Pointer, off int64) {
	if len(dst) == 0 {
		return
	}
	if t.layout == nil {
		mem.Copy(dst, unsafe.Slice((*byte)(unsafe.Add(base, off)), len(dst)))
		return
	}
	m := mover{base: base, packed: unsafe.Pointer(unsafe.SliceData(dst))}
	m.loop(t.layout.node, t.layout.extent, t.layout.at, off, 0, int64(len(dst)))
}

// Unpack copies src to the memory of the packed bytes [off, off+len(src)) of the elements at
// base.
func (t *Type) Unpack(base unsafe.Pointer, off int64, src []byte) {
	t.unpack(base, off, src, false)
}

// UnpackStream is Unpack for a part of so much data that it will have left the caches when it
// is read. It writes long blocks with non-temporal stores, which need not fetch the old lines.
func (t *Type) UnpackStream(base unsafe.Pointer, off int64, src []byte) {
	t.unpack(base, off, src, true)
}

func (t *Type) unpack(base unsafe.Pointer, off int64, src []byte, around bool) {
	if len(src) == 0 {
		return
	}
	if t.layout == nil {
		mem.Copy(unsafe.Slice((*byte)(unsafe.Add(base, off)), len(src)), src)
		return
	}
	m := mover{base: base, packed: unsafe.Pointer(unsafe.SliceData(src)), unpack: true, stream: around}
	m.loop(t.layout.node, t.layout.extent, t.layout.at, off, 0, int64(len(src)))
}

// mover copies between elements at base and packed bytes. In its methods, at is a position
// relative to base, and to is one relative to packed.
type mover struct {
	base, packed unsafe.Pointer
	unpack       bool
	stream       bool // use non-temporal stores when unpacking
}

// loop moves n packed bytes, from off on, of children at a stride.
func (m *mover) loop(c *node, stride, at, off, to, n int64) {
	if off != 0 {
		i := off / c.size
		at, off = at+i*stride, off-i*c.size
		if off != 0 {
			k := min(c.size-off, n)
			m.some(c, at, off, to, k)
			at, to, n = at+stride, to+k, n-k
		}
	}
	if n >= c.size {
		count := n / c.size
		m.repeat(c, count, stride, at, to)
		at, to, n = at+count*stride, to+count*c.size, n-count*c.size
	}
	if n > 0 {
		m.some(c, at, 0, to, n)
	}
}

// some moves n bytes of a node, from off on.
func (m *mover) some(c *node, at, off, to, n int64) {
	switch c.shape {
	case shapeBlock:
		m.copy(at+off, to, n)
	case shapeLoop:
		m.loop(c.child, c.stride, at, off, to, n)
	case shapeBlocks:
		m.someBlocks(c, at, off, to, n)
	case shapeList:
		_, _, i, r := c.seek(off)
		for ; n > 0; i, r = i+1, 0 {
			p := &c.entries[i]
			k := min(p.n.size-r, n)
			if k == p.n.size {
				m.whole(p.n, at+p.at, to)
			} else {
				m.some(p.n, at+p.at, r, to, k)
			}
			to, n = to+k, n-k
		}
	}
}

// someBlocks moves n bytes of a list of blocks, from off on: the rest of a block, then whole
// blocks, then the beginning of a block.
func (m *mover) someBlocks(c *node, at, off, to, n int64) {
	here, size, first, r := c.seek(off)
	if r > 0 {
		k := min(size-r, n)
		m.copy(at+here+r, to, k)
		if off, to, n = off+k, to+k, n-k; n == 0 {
			return
		}
		first++
	}
	last, cut := len(c.blocks)-1, int64(0)
	if off+n < c.size {
		_, _, last, cut = c.seek(off + n)
	}
	m.blocks(c.blocks[first:last+1], c.each, at, to-off)
	if cut > 0 {
		m.copy(at+c.blocks[last].at, to+n-cut, cut)
	}
}

// repeat moves count whole nodes.
func (m *mover) repeat(c *node, count, stride, at, to int64) {
	if c.shape == shapeBlock {
		m.strided(count, c.size, stride, c.size, at, to)
		return
	}
	if tile := tileBytes / max(stride, -stride, c.size); c.few() && min(tile, count) > fewBlocks {
		m.across(c, count, tile, stride, at, to)
		return
	}
	for range count {
		m.whole(c, at, to)
		at, to = at+stride, to+c.size
	}
}

const (
	// For nodes of at most fewBlocks blocks it is faster to swap the loops: the inner loop
	// then runs over the nodes and not over the blocks.
	fewBlocks = 8
	// tileBytes is the memory that such an inner loop works on, so that it stays in the
	// level-1 cache.
	tileBytes = 16 << 10
)

// few reports whether a node has at most fewBlocks blocks.
func (n *node) few() bool {
	switch n.shape {
	case shapeLoop:
		return n.child.shape == shapeBlock && n.count <= fewBlocks
	case shapeBlocks:
		return len(n.blocks)-1 <= fewBlocks
	}
	return false
}

// across moves count nodes of few blocks, tile nodes at a time: first the first block of all
// of them, then the second, and so on.
func (m *mover) across(c *node, count, tile, stride, at, to int64) {
	for count > 0 {
		k := min(tile, count)
		if c.shape == shapeLoop {
			size := c.child.size
			for i := range c.count {
				m.strided(k, size, stride, c.size, at+i*c.stride, to+i*size)
			}
		} else {
			for i := range len(c.blocks) - 1 {
				b := &c.blocks[i]
				m.strided(k, c.blocks[i+1].off-b.off, stride, c.size, at+b.at, to+b.off)
			}
		}
		at, to, count = at+k*stride, to+k*c.size, count-k
	}
}

// whole moves a node.
func (m *mover) whole(c *node, at, to int64) {
	switch c.shape {
	case shapeBlock:
		m.copy(at, to, c.size)
	case shapeLoop:
		m.repeat(c.child, c.count, c.stride, at, to)
	case shapeBlocks:
		m.blocks(c.blocks, c.each, at, to)
	case shapeList:
		for i := range c.entries {
			p := &c.entries[i]
			m.whole(p.n, at+p.at, to+p.off)
		}
	}
}

// copy moves n bytes.
func (m *mover) copy(at, to, n int64) {
	place, packed := unsafe.Add(m.base, at), unsafe.Add(m.packed, to)
	switch {
	case m.stream && n >= streamMin:
		copyStream(place, packed, n, n, 1, n)
	case m.unpack:
		copyBlock(place, packed, n)
	default:
		copyBlock(packed, place, n)
	}
}

// strided moves count blocks of size bytes. They are step bytes apart in memory and
// packedStep bytes apart in the packed bytes.
func (m *mover) strided(count, size, step, packedStep, at, to int64) {
	place, packed := unsafe.Add(m.base, at), unsafe.Add(m.packed, to)
	switch {
	case m.stream && size >= streamMin:
		copyStream(place, packed, step, packedStep, count, size)
	case m.unpack:
		copyStrided(place, packed, step, packedStep, count, size)
	default:
		copyStrided(packed, place, packedStep, step, count, size)
	}
}

// blocks moves the blocks of a list. The last entry only marks the end of the list. to is the
// position of the list's first packed byte, which may lie before the packed bytes.
func (m *mover) blocks(list []block, each, at, to int64) {
	if m.unpack {
		scatter(m.base, m.packed, at, to, list, each)
	} else {
		gather(m.packed, m.base, to, at, list, each)
	}
}
