// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/binary"
	"math"

	"gompi/internal/data/dtype"
)

// The oracle works on the bytes of one element at a time, in 64 bits.

var opNames = [numOps]string{
	Sum: "Sum", Prod: "Prod", Min: "Min", Max: "Max", BitAnd: "BitAnd", BitOr: "BitOr", BitXor: "BitXor",
	LogAnd: "LogAnd", LogOr: "LogOr", LogXor: "LogXor", MinLoc: "MinLoc", MaxLoc: "MaxLoc",
}

func isInt(k dtype.Kind) bool   { return dtype.Int8 <= k && k <= dtype.Uint64 }
func isFloat(k dtype.Kind) bool { return k == dtype.Float32 || k == dtype.Float64 }
func isPair(k dtype.Kind) bool  { return dtype.PairInt8 <= k && k <= dtype.PairFloat64 }

// valueKind is the kind of a pair's value.
func valueKind(k dtype.Kind) dtype.Kind { return k - dtype.PairInt8 + dtype.Int8 }

// defined is the table of MPI 4.1 section 6.9.2 in Go's types.
func defined(o Op, k dtype.Kind) bool {
	switch o {
	case Sum, Prod:
		return isInt(k) || isFloat(k) || k == dtype.Complex64 || k == dtype.Complex128
	case Min, Max:
		return isInt(k) || isFloat(k)
	case BitAnd, BitOr, BitXor:
		return isInt(k)
	case LogAnd, LogOr, LogXor:
		return isInt(k) || k == dtype.Bool
	case MinLoc, MaxLoc:
		return isPair(k)
	}
	return false
}

func sizeOf(k dtype.Kind) int {
	switch k {
	case dtype.Bool, dtype.Int8, dtype.Uint8:
		return 1
	case dtype.Int16, dtype.Uint16:
		return 2
	case dtype.Int32, dtype.Uint32, dtype.Float32:
		return 4
	case dtype.Int64, dtype.Uint64, dtype.Float64, dtype.Complex64:
		return 8
	}
	return 16
}

func load(b []byte) uint64 {
	var w [8]byte
	copy(w[:], b)
	return binary.LittleEndian.Uint64(w[:])
}

func store(b []byte, v uint64) {
	var w [8]byte
	binary.LittleEndian.PutUint64(w[:], v)
	copy(b, w[:])
}

func loadFloat(b []byte) float64 {
	if len(b) == 4 {
		return float64(math.Float32frombits(uint32(load(b))))
	}
	return math.Float64frombits(load(b))
}

// storeFloat rounds v. What float32 sums and products are in float64 is exact
// enough that rounding twice is rounding once.
func storeFloat(b []byte, v float64) {
	switch {
	case v != v:
		store(b, math.MaxUint64)
	case len(b) == 4:
		store(b, uint64(math.Float32bits(float32(v))))
	default:
		store(b, math.Float64bits(v))
	}
}

// want puts a op b into d, elements of one kind.
func want(o Op, k dtype.Kind, d, a, b []byte) {
	switch {
	case isPair(k):
		wantPair(o, valueKind(k), d, a, b)
	case k == dtype.Complex64 || k == dtype.Complex128:
		h := len(d) / 2
		ar, ai, br, bi := loadFloat(a[:h]), loadFloat(a[h:]), loadFloat(b[:h]), loadFloat(b[h:])
		if o == Sum {
			storeFloat(d[:h], ar+br)
			storeFloat(d[h:], ai+bi)
		} else {
			rr, ii, ri, ir := ar*br, ai*bi, ar*bi, ai*br
			storeFloat(d[:h], notFused(rr)-notFused(ii))
			storeFloat(d[h:], notFused(ri)+notFused(ir))
		}
	case isFloat(k):
		storeFloat(d, wantFloat(o, loadFloat(a), loadFloat(b)))
	default:
		store(d, wantInt(o, k, load(a), load(b)))
	}
}

//go:noinline
func notFused(v float64) float64 { return v }

func wantFloat(o Op, x, y float64) float64 {
	switch o {
	case Sum:
		return x + y
	case Prod:
		return x * y
	}
	switch {
	case x != x || y != y:
		return math.NaN()
	case x == 0 && y == 0:
		if (o == Min) == math.Signbit(x) {
			return x
		}
		return y
	case (x < y) == (o == Min):
		return x
	}
	return y
}

func signed(k dtype.Kind) bool { return k <= dtype.Int64 }

// less compares integers of kind k.
func less(k dtype.Kind, x, y uint64) bool {
	if signed(k) {
		shift := 64 - 8*sizeOf(k)
		return int64(x<<shift) < int64(y<<shift)
	}
	return x < y
}

func wantInt(o Op, k dtype.Kind, x, y uint64) uint64 {
	truth := func(b bool) uint64 {
		if b {
			return 1
		}
		return 0
	}
	switch o {
	case Sum:
		return x + y
	case Prod:
		return x * y
	case Min:
		if less(k, y, x) {
			return y
		}
		return x
	case Max:
		if less(k, x, y) {
			return y
		}
		return x
	case BitAnd:
		return x & y
	case BitOr:
		return x | y
	case BitXor:
		return x ^ y
	case LogAnd:
		return truth(x != 0 && y != 0)
	case LogOr:
		return truth(x != 0 || y != 0)
	case LogXor:
		return truth((x != 0) != (y != 0))
	}
	panic("no such operation")
}

// wantPair follows the definition: the value is that of Min or Max, the index
// the lowest of the operands that have it. Padding is zero.
func wantPair(o Op, k dtype.Kind, d, a, b []byte) {
	base := Min
	if o == MaxLoc {
		base = Max
	}
	n := sizeOf(k)
	clear(d)
	want(base, k, d[:n], a[:n], b[:n])
	has := func(e []byte) bool {
		if isFloat(k) {
			v, w := loadFloat(e[:n]), loadFloat(d[:n])
			return v == w || v != v && w != w
		}
		return load(e[:n]) == load(d[:n])
	}
	i, j := load(a[8:]), load(b[8:])
	switch {
	case has(a) && (!has(b) || int64(i) < int64(j)):
		store(d[8:], i)
	default:
		store(d[8:], j)
	}
}

// specials are elements at the edges of a kind.
func specials(k dtype.Kind) [][]byte {
	element := func(v uint64, size int) []byte {
		e := make([]byte, size)
		store(e, v)
		return e
	}
	var out [][]byte
	switch {
	case isPair(k):
		for _, v := range specials(valueKind(k)) {
			for _, i := range []uint64{0, 1, math.MaxInt64, math.MaxUint64} {
				e := make([]byte, 16)
				copy(e, v)
				store(e[8:], i)
				out = append(out, e)
			}
		}
	case k == dtype.Complex64 || k == dtype.Complex128:
		part := dtype.Float32
		if k == dtype.Complex128 {
			part = dtype.Float64
		}
		for _, re := range specials(part) {
			for _, im := range specials(part) {
				out = append(out, append(re[:len(re):len(re)], im...))
			}
		}
	case k == dtype.Float32:
		for _, v := range []uint32{0, 1 << 31, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001,
			0xffffffff, 0x7f7fffff, 0xff7fffff, 1, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x40490fdb, 0x33800000} {
			out = append(out, element(uint64(v), 4))
		}
	case k == dtype.Float64:
		for _, v := range []uint64{0, 1 << 63, math.Float64bits(1), math.Float64bits(-1), math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)),
			math.Float64bits(math.NaN()), 0xfff8000000000000, 0x7ff0000000000001, math.MaxUint64, math.Float64bits(math.MaxFloat64), math.Float64bits(-math.MaxFloat64),
			1, 1<<63 | 1, 0x000fffffffffffff, 0x800fffffffffffff, 0x0010000000000000, math.Float64bits(math.Pi), math.Float64bits(0x1p-53)} {
			out = append(out, element(v, 8))
		}
	default:
		top := uint64(1) << (8*sizeOf(k) - 1)
		for _, v := range []uint64{0, 1, 2, 3, 0x55, top - 1, top, top + 1, 2*top - 1, 2*top - 2, 0xfedcba9876543210} {
			out = append(out, element(v, sizeOf(k)))
		}
	}
	return out
}
