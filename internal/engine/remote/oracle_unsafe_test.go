// SPDX-License-Identifier: Apache-2.0

package remote

// unsafe: the oracle packs by types and calls kernels, which want addresses.

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
	"gompi/internal/data/kernel"
)

func addr(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// strided is a buffer of count elements of a type, the first at byte at.
func strided(b []byte, at, count int64, t *dtype.Type) buffer.Buf {
	return buffer.New(unsafe.Add(addr(b), at), count, t)
}

// packed are the bytes of a layout, one element at a time: slow and plain.
func packed(mem []byte, l Layout) []byte {
	var out []byte
	unit := l.Type.Unit()
	for off := int64(0); off < l.Count*l.Type.Size; off += unit {
		at, _ := l.Type.Block(off, unit)
		out = append(out, mem[l.Off+at:][:unit]...)
	}
	return out
}

// store is the reverse of packed.
func store(mem []byte, l Layout, b []byte) {
	unit := l.Type.Unit()
	for off := int64(0); off < int64(len(b)); off += unit {
		at, _ := l.Type.Block(off, unit)
		copy(mem[l.Off+at:], b[off:][:unit])
	}
}

// apply is what an operation makes of packed elements of a kind.
func apply(op kernel.Op, k dtype.Kind, target, operand []byte) []byte {
	out := append([]byte(nil), target...)
	switch op {
	case kernel.NoOp:
	case kernel.Replace:
		copy(out, operand)
	default:
		n := sizeOf(k)
		for i := int64(0); i < int64(len(out)); i += n {
			kernel.Of(op, k)(addr(out[i:]), addr(operand[i:]), addr(target[i:]), 1)
		}
	}
	return out
}

// basicOf is a basic type of a kind.
func basicOf(k dtype.Kind) *dtype.Type {
	return &dtype.Type{Name: fmt.Sprint("kind ", k), Kind: k, Size: sizeOf(k)}
}

var allOps = []kernel.Op{
	kernel.Sum, kernel.Prod, kernel.Min, kernel.Max, kernel.BitAnd, kernel.BitOr, kernel.BitXor,
	kernel.LogAnd, kernel.LogOr, kernel.LogXor, kernel.MinLoc, kernel.MaxLoc, kernel.Replace, kernel.NoOp,
}

func must(t testing.TB) func(*dtype.Type, error) *dtype.Type {
	return func(dt *dtype.Type, err error) *dtype.Type {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return dt
	}
}

// clean gives padding of pairs a value that operations keep apart from numbers.
func clean(k dtype.Kind, b []byte) []byte {
	if k >= dtype.PairInt8 {
		n := sizeOf(dtype.Int8 + k - dtype.PairInt8)
		for i := int64(0); i+16 <= int64(len(b)); i += 16 {
			clear(b[i+n : i+8])
		}
	}
	return b
}

// specials are numbers of each kind among which are zeros, NaNs and infinities.
type specials [dtype.NumKinds][]byte

const specialBytes = 64 << 10

func newSpecials() (s specials) {
	for k := range s {
		b := random(make([]byte, specialBytes))
		for i := 0; i < len(b); i += 8 {
			switch b[i] % 5 {
			case 0:
				clear(b[i : i+8])
			case 1:
				copy(b[i:], "\x00\x00\xc0\x7f\x00\x00\xf8\x7f") // NaNs
			case 2:
				copy(b[i:], "\x00\x00\x80\xff\x00\x00\xf0\xff") // infinities
			}
		}
		s[k] = clean(dtype.Kind(k), b)
	}
	return s
}

// fill puts some of kind k into b, half as many bytes at most.
func (s *specials) fill(k dtype.Kind, b []byte) []byte {
	copy(b, s[k][rand.IntN(specialBytes/32)*16:])
	return b
}
