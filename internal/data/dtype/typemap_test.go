// SPDX-License-Identifier: Apache-2.0

package dtype

import "pgregory.net/rapid"

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

// align is the strictest alignment of the basic elements.
func (m *typemap) align() int64 {
	a := int64(1)
	for _, e := range m.elems {
		switch e.t {
		case tComplex, tRecord:
			a = max(a, 8)
		case tOpaque:
		default:
			a = max(a, e.t.Size)
		}
	}
	return a
}

// base is the only basic type, nil if there are none or several.
func (m *typemap) base() *Type {
	for _, e := range m.elems {
		if e.t != m.elems[0].t {
			return nil
		}
	}
	if len(m.elems) == 0 {
		return nil
	}
	return m.elems[0].t
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
	// struct{ a [2]int16; b bool; c [2]struct{ d float64; e int32 } }
	tRecord = NewRecord("record", 40, 8, Opaque, []Run{{Width: 2, N: 2}, {Width: 1, N: 1}, {N: 3},
		{N: 2, Sub: []Run{{Width: 8, N: 1}, {Width: 4, N: 1}, {N: 4}}}})
	basics = []*Type{Byte, tInt16, tFloat32, tFloat64, tComplex, tOpaque, tRecord}
)

type number struct{ at, width int64 }

// numbersOf lists the numbers of a basic type.
func numbersOf(t *Type) (ns []number) {
	switch t {
	case tComplex:
		return []number{{0, 8}, {8, 8}}
	case tRecord:
		return []number{{0, 2}, {2, 2}, {4, 1}, {8, 8}, {16, 4}, {24, 8}, {32, 4}}
	case tOpaque:
		for i := range t.Size {
			ns = append(ns, number{i, 1})
		}
		return ns
	}
	return []number{{0, t.Size}}
}

// both is a type and its twin.
type both struct {
	t *Type
	m *typemap
}

func (b both) String() string { return b.t.Name }

// drawType makes a random type, nested up to depth times.
func drawType(r *rapid.T, depth int) both {
	if depth == 0 || rapid.IntRange(0, 5).Draw(r, "leaf") == 5 {
		t := rapid.SampledFrom(basics).Draw(r, "basic")
		return both{t, &typemap{elems: []elem{{0, t}}, ub: t.Size, known: true}}
	}
	count := func(name string, most int64) int64 {
		if rapid.IntRange(0, 15).Draw(r, "none") == 15 {
			return 0
		}
		return rapid.Int64Range(1, most).Draw(r, name)
	}
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
	switch rapid.IntRange(0, 10).Draw(r, "constructor") {
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
		align := int64(1)
		for i := range n {
			m.block(l[i], ms[i], d[i])
			if l[i] > 0 {
				align = max(align, ms[i].align())
			}
		}
		if !m.ubSet {
			for (m.ub-m.lb)%align != 0 {
				m.ub++
			}
		}
	case 8:
		lb, e := step("lb"), rapid.Int64Range(-20, 90).Draw(r, "extent")
		t, err = NewResized(old.t, lb, e)
		*m = *old.m
		m.lb, m.ub, m.lbSet, m.ubSet, m.known = lb, lb+e, true, true, true
	case 9:
		t, err = NewDup(old.t)
		*m = *old.m
	case 10:
		t, m, err = drawArray(r, old)
	}
	if err != nil {
		r.Fatal(err)
	}
	return both{t, m}
}

// drawArray makes a subarray or one process's part of a distributed array.
func drawArray(r *rapid.T, old both) (*Type, *typemap, error) {
	n := rapid.IntRange(1, 3).Draw(r, "dimensions")
	order := Order(rapid.IntRange(0, 1).Draw(r, "order"))
	sizes := make([]int64, n)
	for i := range sizes {
		sizes[i] = rapid.Int64Range(1, 5).Draw(r, "size")
	}
	if rapid.Bool().Draw(r, "subarray") {
		subsizes, starts := make([]int64, n), make([]int64, n)
		for i, s := range sizes {
			subsizes[i] = rapid.Int64Range(1, s).Draw(r, "subsize")
			starts[i] = rapid.Int64Range(0, s-subsizes[i]).Draw(r, "start")
		}
		t, err := NewSubarray(sizes, subsizes, starts, order, old.t)
		mine := func(d int, i int64) bool { return i >= starts[d] && i < starts[d]+subsizes[d] }
		return t, arrayTwin(sizes, order, mine, old.m), err
	}
	g := ArrayDistribution{sizes, make([]Distribution, n), make([]int64, n), make([]int64, n), order}
	size := int64(1)
	for i, s := range sizes {
		g.Distribs[i] = Distribution(rapid.IntRange(0, 2).Draw(r, "distribution"))
		g.Procs[i] = 1
		if g.Distribs[i] != DistributeNone {
			g.Procs[i] = rapid.Int64Range(1, 3).Draw(r, "processes")
		}
		g.Args[i] = DefaultArg
		if rapid.Bool().Draw(r, "argument") {
			least := int64(1)
			if g.Distribs[i] == DistributeBlock {
				least = (s + g.Procs[i] - 1) / g.Procs[i]
			}
			g.Args[i] = rapid.Int64Range(least, 6).Draw(r, "block")
		}
		size *= g.Procs[i]
	}
	rank := rapid.Int64Range(0, size-1).Draw(r, "rank")
	place, left := make([]int64, n), rank
	for i, width := 0, size; i < n; i++ {
		width /= g.Procs[i]
		place[i], left = left/width, left%width
	}
	t, err := NewDarray(size, rank, g, old.t)
	mine := func(d int, i int64) bool {
		block := g.Args[d]
		switch {
		case g.Distribs[d] == DistributeNone:
			return true
		case block == DefaultArg && g.Distribs[d] == DistributeCyclic:
			block = 1
		case block == DefaultArg:
			block = (sizes[d] + g.Procs[d] - 1) / g.Procs[d]
		}
		return i/block%g.Procs[d] == place[d]
	}
	return t, arrayTwin(sizes, order, mine, old.m), err
}

// arrayTwin lists the elements of an array that are mine, in their order in
// memory.
func arrayTwin(sizes []int64, order Order, mine func(d int, i int64) bool, old *typemap) *typemap {
	all := int64(1)
	for _, s := range sizes {
		all *= s
	}
	m := &typemap{}
	for e := range all {
		ours, left := true, e
		for k := range sizes {
			d := k
			if order == OrderC {
				d = len(sizes) - 1 - k
			}
			ours = ours && mine(d, left%sizes[d])
			left /= sizes[d]
		}
		if ours {
			m.add(old, e*old.extent())
		}
	}
	m.lb, m.ub, m.lbSet, m.ubSet, m.known = 0, all*old.extent(), true, true, true
	return m
}
