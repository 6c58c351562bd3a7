// SPDX-License-Identifier: Apache-2.0

package engine

// unsafe: strided buffers are given by the address of their first element.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"unsafe"

	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
)

// A shape is an element type together with the places of its packed bytes,
// relative to the element, as a list.
type shape struct {
	name   string
	t      *dtype.Type
	places []int
}

func mustType(t *dtype.Type, err error) *dtype.Type {
	if err != nil {
		panic(err)
	}
	return t
}

// run appends the places of n bytes from at on.
func run(places []int, at, n int) []int {
	for i := range n {
		places = append(places, at+i)
	}
	return places
}

var float64Type = &dtype.Type{Name: "float64", Size: 8, Kind: dtype.Float64}

// shapes are types with small, middle, nested and irregular blocks.
func shapes() []shape {
	var vector8, vector100, nested, irregular []int
	for i := range 16 {
		vector8 = run(vector8, 24*i, 8)
	}
	for i := range 7 {
		vector100 = run(vector100, 130*i, 100)
	}
	for i := range 5 {
		nested = run(nested, 400*i+350, 24)
		for k := range 15 {
			nested = run(nested, 400*i+24*k, 8)
		}
	}
	lens, displs := []int64{3, 1, 17, 64, 2}, []int64{100, 0, 200, 20, 10}
	for i := range lens {
		irregular = run(irregular, int(displs[i]), int(lens[i]))
	}
	column := mustType(dtype.NewVector(15, 1, 3, float64Type))
	pair := mustType(dtype.NewStruct([]int64{3, 1}, []int64{350, 0}, []*dtype.Type{float64Type, column}))
	return []shape{
		{"contiguous", dtype.Byte, []int{0}},
		{"vector8", mustType(dtype.NewVector(16, 1, 3, float64Type)), vector8},
		{"vector100", mustType(dtype.NewHvector(7, 100, 130, dtype.Byte)), vector100},
		{"nested", mustType(dtype.NewHvector(5, 1, 400, pair)), nested},
		{"irregular", mustType(dtype.NewHindexed(lens, displs, dtype.Byte)), irregular},
	}
}

// rows are blocks that are long enough to be written around the caches.
func rows() shape {
	var places []int
	for i := range 5 {
		places = run(places, 1100*i, 1000)
	}
	return shape{"rows", mustType(dtype.NewHvector(5, 1000, 1100, dtype.Byte)), places}
}

// place is where packed byte i lies.
func (s *shape) place(i int) int {
	return i/len(s.places)*int(s.t.Extent()) + s.places[i%len(s.places)]
}

// striped is memory of a shape, of which n packed bytes from off on are a buffer.
type striped struct {
	shape  *shape
	mem    []byte
	off, n int
}

// newStriped makes memory for n packed bytes of a shape, filled with a byte.
func newStriped(s *shape, off, n int, fill byte) *striped {
	elems := (off + n + len(s.places) - 1) / len(s.places)
	size := int(s.t.Extent())*elems + 500
	return &striped{s, bytes.Repeat([]byte{fill}, size), off, n}
}

func (a *striped) buf() buffer.Buf {
	elems := (a.off + a.n + len(a.shape.places) - 1) / len(a.shape.places)
	return buffer.New(unsafe.Pointer(&a.mem[0]), int64(elems), a.shape.t).Part(int64(a.off), int64(a.n))
}

// put writes packed bytes one by one.
func (a *striped) put(b []byte) *striped {
	for i, v := range b {
		a.mem[a.shape.place(a.off+i)] = v
	}
	return a
}

// want compares the whole memory, gaps too.
func (a *striped) want(b []byte, fill byte) error {
	w := newStriped(a.shape, a.off, a.n, fill).put(b)
	if i := firstDifference(a.mem, w.mem); i >= 0 {
		return fmt.Errorf("%s: byte %d of memory is %d, want %d (%d packed bytes from %d)", a.shape.name, i, a.mem[i], w.mem[i], a.n, a.off)
	}
	return nil
}

func firstDifference(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}

func noise(seed uint64, n int) []byte {
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(n)})
	b := make([]byte, n)
	r.Read(b)
	return b
}

// addBytes is a kernel.
func addBytes(dst, a, b unsafe.Pointer, n int64) {
	x, y, z := unsafe.Slice((*byte)(a), n), unsafe.Slice((*byte)(b), n), unsafe.Slice((*byte)(dst), n)
	for i := range z {
		z[i] = x[i] + y[i]
	}
}
