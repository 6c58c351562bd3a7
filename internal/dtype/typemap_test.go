// SPDX-License-Identifier: Apache-2.0

package dtype

import (
	"pgregory.net/rapid"
)

// typemap is the slow twin of a type: every basic element with its
// displacement, in packed order. MPI 4.1 section 5.1.
type typemap struct {
	elems []elem
	// Bounds follow from all blocks; known is false without any.
	lb, ub       int64
	lbSet, ubSet bool
	known        bool
}

type elem struct {
	at int64
	t  *Type
}

func (m *typemap) extent() int64 { return m.ub - m.lb }

func (m *typemap) size() (n int64) {
	for _, e := range m.elems {
		n += e.t.Size
	}
	return n
}

func (m *typemap) trueBounds() (lb, ub int64) {
	for i, e := range m.elems {
		if i == 0 {
			lb, ub = e.at, e.at+e.t.Size
		}
		lb, ub = min(lb, e.at), max(ub, e.at+e.t.Size)
	}
	return lb, ub
}

// bytesOf lists where each packed byte of n elements lies.
func (m *typemap) bytesOf(n int64) (at []int64) {
	for i := range n {
		for _, e := range m.elems {
			for b := range e.t.Size {
				at = append(at, i*m.extent()+e.at+b)
			}
		}
	}
	return at
}

// add appends o at a displacement.
func (m *typemap) add(o *typemap, by int64) {
	if !o.known {
		return
	}
	for _, e := range o.elems {
		m.elems = append(m.elems, elem{e.at + by, e.t})
	}
	if !m.known || o.lbSet && !m.lbSet || o.lbSet == m.lbSet && o.lb+by < m.lb {
		m.lb, m.lbSet = o.lb+by, o.lbSet
	}
	if !m.known || o.ubSet && !m.ubSet || o.ubSet == m.ubSet && o.ub+by > m.ub {
		m.ub, m.ubSet = o.ub+by, o.ubSet
	}
	m.known = true
}

// block appends n elements of o from a displacement on.
func (m *typemap) block(n int64, o *typemap, by int64) {
	for i := range n {
		m.add(o, by+i*o.extent())
	}
}

var (
	tInt16   = &Type{Name: "int16", Size: 2, Kind: Int16}
	tFloat32 = &Type{Name: "float32", Size: 4, Kind: Float32}
	tFloat64 = &Type{Name: "float64", Size: 8, Kind: Float64}
	tComplex = &Type{Name: "complex128", Size: 16, Kind: Complex128}
	tOpaque  = &Type{Name: "struct", Size: 24}
	basics   = []*Type{Byte, tInt16, tFloat32, tFloat64, tComplex, tOpaque}
)

// both is a type and its twin.
type both struct {
	t *Type
	m *typemap
}

func (b both) String() string { return b.t.Name }

// drawType makes a random type, nested up to depth times.
func drawType(r *rapid.T, depth int) both {
	if depth == 0 || rapid.IntRange(0, 5).Draw(r, "leaf") == 0 {
		t := rapid.SampledFrom(basics).Draw(r, "basic")
		return both{t, &typemap{elems: []elem{{0, t}}, ub: t.Size, known: true}}
	}
	count := func(name string, most int64) int64 { return rapid.Int64Range(0, most).Draw(r, name) }
	step := func(name string) int64 { return rapid.Int64Range(-9, 12).Draw(r, name) }
	counts := func(n int64, most int64) []int64 {
		s := make([]int64, n)
		for i := range s {
			s[i] = count("len", most)
		}
		return s
	}
	steps := func(n int64, unit int64) []int64 {
		s := make([]int64, n)
		for i := range s {
			s[i] = step("displ") * unit
		}
		return s
	}
	old := drawType(r, depth-1)
	ext := old.m.extent()
	m := &typemap{}
	var t *Type
	var err error
	switch rapid.IntRange(0, 8).Draw(r, "constructor") {
	case 0:
		n := count("count", 4)
		t, err = NewContiguous(n, old.t)
		m.block(n, old.m, 0)
	case 1:
		n, l, s := count("count", 4), count("blocklen", 3), step("stride")
		t, err = NewVector(n, l, s, old.t)
		for i := range n {
			m.block(l, old.m, i*s*ext)
		}
	case 2:
		n, l, s := count("count", 4), count("blocklen", 3), step("stride")
		t, err = NewHvector(n, l, s, old.t)
		for i := range n {
			m.block(l, old.m, i*s)
		}
	case 3:
		n := count("count", 5)
		l, d := counts(n, 3), steps(n, 1)
		t, err = NewIndexed(l, d, old.t)
		for i := range n {
			m.block(l[i], old.m, d[i]*ext)
		}
	case 4:
		n := count("count", 5)
		l, d := counts(n, 3), steps(n, 4)
		t, err = NewHindexed(l, d, old.t)
		for i := range n {
			m.block(l[i], old.m, d[i])
		}
	case 5:
		n := count("count", 5)
		l, d := count("blocklen", 3), steps(n, 1)
		t, err = NewIndexedBlock(l, d, old.t)
		for i := range n {
			m.block(l, old.m, d[i]*ext)
		}
	case 6:
		n := count("count", 5)
		l, d := count("blocklen", 3), steps(n, 8)
		t, err = NewHindexedBlock(l, d, old.t)
		for i := range n {
			m.block(l, old.m, d[i])
		}
	case 7:
		n := count("count", 3)
		l, d := counts(n, 2), steps(n, 8)
		ts, ms := make([]*Type, n), make([]*typemap, n)
		for i := range n {
			b := drawType(r, depth-1)
			ts[i], ms[i] = b.t, b.m
		}
		t, err = NewStruct(l, d, ts)
		for i := range n {
			m.block(l[i], ms[i], d[i])
		}
	case 8:
		lb, e := step("lb"), rapid.Int64Range(-20, 90).Draw(r, "extent")
		t, err = NewResized(old.t, lb, e)
		*m = *old.m
		m.lb, m.ub, m.lbSet, m.ubSet, m.known = lb, lb+e, true, true, true
	}
	if err != nil {
		r.Fatal(err)
	}
	return both{t, m}
}
