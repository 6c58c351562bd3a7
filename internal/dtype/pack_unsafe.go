// SPDX-License-Identifier: Apache-2.0

package dtype

// unsafe: a layout is applied to memory of any Go type, given by its address.
// Addresses stay numbers until they are used: a pointer beyond its object must
// not exist while the garbage collector runs.

import (
	"unsafe"

	"gompi/internal/mem"
)

// Pack copies the packed bytes [off, off+len(dst)) of the elements at base to
// dst. There are as many elements as it takes; all of them must be memory.
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

// Unpack copies src to where the packed bytes [off, off+len(src)) of the
// elements at base belong.
func (t *Type) Unpack(base unsafe.Pointer, off int64, src []byte) {
	if len(src) == 0 {
		return
	}
	if t.layout == nil {
		mem.Copy(unsafe.Slice((*byte)(unsafe.Add(base, off)), len(src)), src)
		return
	}
	m := mover{base: base, packed: unsafe.Pointer(unsafe.SliceData(src)), unpack: true}
	m.loop(t.layout.node, t.layout.extent, t.layout.at, off, 0, int64(len(src)))
}

// mover copies between elements at base and packed bytes. In its methods at is
// a place relative to base, and to one relative to packed.
type mover struct {
	base, packed unsafe.Pointer
	unpack       bool
}

// loop moves n packed bytes from off on of children at stride.
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

// some moves n bytes of a node from off on.
func (m *mover) some(c *node, at, off, to, n int64) {
	switch c.shape {
	case aBlock:
		m.copy(at+off, to, n)
	case aLoop:
		m.loop(c.child, c.stride, at, off, to, n)
	default:
		for n > 0 {
			here, size, i, r := c.seek(off)
			k := min(size-r, n)
			if c.shape == aBlocks {
				m.copy(at+here+r, to, k)
			} else {
				m.some(c.parts[i].n, at+here, r, to, k)
			}
			off, to, n = off+k, to+k, n-k
		}
	}
}

// repeat moves count whole nodes.
func (m *mover) repeat(c *node, count, stride, at, to int64) {
	switch {
	case c.shape == aBlock && count > 1:
		m.strided(count, c.size, stride, at, to)
		return
	case c.shape == aLoop && c.child.shape == aBlock:
		for range count {
			m.strided(c.count, c.child.size, c.stride, at, to)
			at, to = at+stride, to+c.size
		}
		return
	}
	for range count {
		m.whole(c, at, to)
		at, to = at+stride, to+c.size
	}
}

// whole moves a node.
func (m *mover) whole(c *node, at, to int64) {
	switch c.shape {
	case aBlock:
		m.copy(at, to, c.size)
	case aLoop:
		m.repeat(c.child, c.count, c.stride, at, to)
	case aBlocks:
		m.blocks(c, at, to)
	case aList:
		for i := range c.parts {
			p := &c.parts[i]
			m.whole(p.n, at+p.at, to+p.off)
		}
	}
}

// copy moves n bytes.
func (m *mover) copy(at, to, n int64) {
	place := unsafe.Slice((*byte)(unsafe.Add(m.base, at)), n)
	packed := unsafe.Slice((*byte)(unsafe.Add(m.packed, to)), n)
	if m.unpack {
		mem.Copy(place, packed)
	} else {
		mem.Copy(packed, place)
	}
}

// strided moves count blocks of size bytes.
func (m *mover) strided(count, size, stride, at, to int64) {
	for range count {
		m.copy(at, to, size)
		at, to = at+stride, to+size
	}
}

// blocks moves a list of blocks.
func (m *mover) blocks(c *node, at, to int64) {
	for i := range len(c.blocks) - 1 {
		b := &c.blocks[i]
		m.copy(at+b.at, to+b.off, c.blocks[i+1].off-b.off)
	}
}
