// SPDX-License-Identifier: Apache-2.0

package dtype

// Comb is Count blocks of Len bytes, Stride bytes apart, the first at At. Len is at most
// Stride, and both are above 0.
type Comb struct{ At, Len, Stride, Count int64 }

// Comb returns the position of the packed bytes [off, off+n) if they form a comb, as for
// contiguous elements and for one vector. n must be above 0.
func (t *Type) Comb(off, n int64) (c Comb, ok bool) {
	if at, length := t.Block(off, n); length == n {
		return Comb{at, n, n, 1}, true
	}
	l := t.layout
	switch {
	case l.node.shape == shapeBlock && off%t.Size == 0 && n%t.Size == 0:
		c = Comb{l.at + off/t.Size*l.extent, t.Size, l.extent, n / t.Size}
	case l.node.shape == shapeLoop && l.node.child.shape == shapeBlock && off%t.Size == 0 && n == t.Size:
		c = Comb{l.at + off/t.Size*l.extent, l.node.child.size, l.node.stride, l.node.count}
	}
	if c.Stride < 0 {
		c.At += (c.Count - 1) * c.Stride
		c.Stride = -c.Stride
	}
	return c, c.Len > 0 && c.Len <= c.Stride
}

// Meets reports whether c and o share a byte. Positions of o count from by bytes above those
// of c. ok is false if the strides do not allow a simple answer.
func (c Comb) Meets(o Comb, by int64) (meets, ok bool) {
	switch {
	case c.Count == 1 && c.Len <= o.Stride:
		c.Stride = o.Stride
	case o.Count == 1 && o.Len <= c.Stride:
		o.Stride = c.Stride
	}
	if c.Stride != o.Stride {
		return false, false
	}
	// Block j of o begins d bytes above block j+k of c.
	d := o.At + by - c.At
	k := d / c.Stride
	if d %= c.Stride; d < 0 {
		d, k = d+c.Stride, k-1
	}
	inRange := func(k int64) bool { return k > -o.Count && k < c.Count }
	return d < c.Len && inRange(k) || c.Stride-d < o.Len && inRange(k+1), true
}
