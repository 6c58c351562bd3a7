// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"math"
	"math/bits"
	"slices"

	"gompi/internal/base/fault"
)

// Pack appends the elements of b to dst, side by side, as a message holds them.
// Such bytes may be sent as elements of byte to a receiver that unpacks them.
// It fails with ErrType or ErrCount if b cannot be used. MPI 4.1 section 5.2.
func Pack(dst []byte, b Buf) ([]byte, error) {
	if err := b.usable("Pack"); err != nil {
		return dst, err
	}
	dst, part := extend(dst, b.Bytes())
	if len(part) > 0 {
		b.b.Pack(part, 0)
	}
	return dst, nil
}

// Unpack fills the elements of b from src, and returns what is behind them. It
// fails with ErrTruncate if src is too short, and then changes nothing.
// MPI 4.1 section 5.2.
func Unpack(src []byte, b Buf) (rest []byte, err error) {
	part, rest, err := b.cut("Unpack", src, b.Bytes())
	if len(part) > 0 {
		b.b.Unpack(0, part)
	}
	return rest, err
}

// PackExternal is Pack in the external32 representation, which is the same on
// all machines: numbers are big-endian and have the sizes of Go's types, int
// eight bytes; complex numbers are two floats; padding of structs is left out.
// MPI 4.1 section 5.3.
func PackExternal(dst []byte, b Buf) ([]byte, error) {
	if err := b.usable("PackExternal"); err != nil {
		return dst, err
	}
	dst, part := extend(dst, b.externalBytes())
	if len(part) > 0 {
		b.b.PackExternal(part)
	}
	return dst, nil
}

// UnpackExternal is Unpack of what PackExternal packed. MPI 4.1 section 5.3.
func UnpackExternal(src []byte, b Buf) (rest []byte, err error) {
	part, rest, err := b.cut("UnpackExternal", src, b.externalBytes())
	if len(part) > 0 {
		b.b.UnpackExternal(part)
	}
	return rest, err
}

// PackSize is the number of bytes that Pack appends for count elements, or
// Undefined if there is no such number. MPI 4.1 section 5.2.
func (dt Datatype) PackSize(count int) int { return packedBytes(count, dt.typ().Size) }

// ExternalSize is the number of bytes that PackExternal appends for count
// elements, or Undefined. MPI 4.1 section 5.3.
func (dt Datatype) ExternalSize(count int) int { return packedBytes(count, dt.typ().ExternalSize()) }

func packedBytes(count int, size int64) int {
	if hi, lo := bits.Mul64(uint64(count), uint64(size)); count >= 0 && hi == 0 && lo <= math.MaxInt64 {
		return int(lo)
	}
	return Undefined
}

func (b Buf) externalBytes() int64 {
	if b.b.Type == nil {
		return 0
	}
	return b.b.Count() * b.b.Type.ExternalSize()
}

// usable is Err as an error of a call.
func (b Buf) usable(op fault.Call) error {
	if err := b.Err(); err != nil {
		return (*Comm)(nil).fail(&argFault{class: ErrType, op: op, err: err})
	}
	return nil
}

// extend appends n bytes, which part is.
func extend(dst []byte, n int64) (all, part []byte) {
	at := len(dst)
	all = slices.Grow(dst, int(n))[:at+int(n)]
	return all, all[at:]
}

// cut takes the first n bytes of src, if b can be filled from them.
func (b Buf) cut(op fault.Call, src []byte, n int64) (part, rest []byte, err error) {
	if err := b.usable(op); err != nil {
		return nil, src, err
	}
	if int64(len(src)) < n {
		return nil, src, (*Comm)(nil).fail(&argFault{class: ErrTruncate, op: op, got: int64(len(src)), want: n, unit: "bytes"})
	}
	return src[:n], src[n:], nil
}
