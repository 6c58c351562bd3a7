// SPDX-License-Identifier: Apache-2.0

package dtype

// unsafe: Pack takes an address.

import (
	"encoding/binary"
	"math"
	"testing"
	"unsafe"
)

// matrix is as large as the one of the column exchange.
const matrix = 4096

// BenchmarkColumn packs columns of a matrix, one after the other; the loop is
// what a Go program would write, and the bound for vector.
func BenchmarkColumn(b *testing.B) {
	m := make([]float64, matrix*matrix)
	for i := range m {
		m[i] = float64(i)
	}
	dst := make([]byte, 8*matrix)
	col, err := NewVector(matrix, 1, matrix, tFloat64)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("loop", func(b *testing.B) {
		b.SetBytes(8 * matrix)
		out := make([]float64, matrix)
		for i := range b.N {
			c := i % matrix
			for r := range out {
				out[r] = m[r*matrix+c]
			}
		}
		if got := out[1]; got != m[matrix+(b.N-1)%matrix] {
			b.Fatalf("row 1 is %v", got)
		}
	})
	b.Run("pack", func(b *testing.B) {
		b.SetBytes(8 * matrix)
		b.ReportAllocs()
		for i := range b.N {
			col.Pack(dst, unsafe.Pointer(&m[i%matrix]), 0)
		}
		if got := binary.NativeEndian.Uint64(dst[8:]); got != math.Float64bits(m[matrix+(b.N-1)%matrix]) {
			b.Fatalf("row 1 is %v", math.Float64frombits(got))
		}
	})
	b.Run("unpack", func(b *testing.B) {
		b.SetBytes(8 * matrix)
		b.ReportAllocs()
		for i := range b.N {
			col.Unpack(unsafe.Pointer(&m[i%matrix]), 0, dst)
		}
	})
}

// BenchmarkPack packs 64 KiB of other layouts.
func BenchmarkPack(b *testing.B) {
	const size = 64 << 10
	must := func(t *Type, err error) *Type {
		if err != nil {
			b.Fatal(err)
		}
		return t
	}
	displs := make([]int64, 1024)
	for i := range displs {
		displs[i] = int64(i*3 + i%2)
	}
	for name, t := range map[string]*Type{
		"contiguous":  must(NewContiguous(16, tFloat64)),
		"pairs":       must(NewVector(64, 2, 4, tFloat64)),
		"24 of 48":    must(NewVector(64, 3, 6, tFloat64)),
		"1024 of 4k":  must(NewVector(64, 128, 512, tFloat64)),
		"indexed":     must(NewIndexedBlock(1, displs, tFloat64)),
		"struct":      must(NewStruct([]int64{1, 1, 2}, []int64{0, 8, 24}, []*Type{tFloat32, tFloat64, tFloat64})),
		"bytes":       must(NewVector(1024, 1, 4, Byte)),
		"half a word": must(NewResized(tFloat32, 0, 8)),
	} {
		b.Run(name, func(b *testing.B) {
			_, hi := t.Span(0, size)
			m, dst := make([]byte, hi), make([]byte, size)
			b.SetBytes(size)
			for range b.N {
				t.Pack(dst, unsafe.Pointer(&m[0]), 0)
			}
		})
	}
}
