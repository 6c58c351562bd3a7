// SPDX-License-Identifier: Apache-2.0

package mpi

// unsafe: displacements become addresses here, after the check that all of
// them stay inside the slice.

import (
	"fmt"
	"reflect"
	"unsafe"

	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
	"gompi/internal/engine"
)

// BufAs describes count elements of dt in s: displacement 0 of the first is
// s[0]. The element type of s says only where there is memory.
//
// All elements must lie inside s, and the elements of s must be free of
// pointers, unless dt is TypeFields of T; every call with the Buf otherwise
// fails with ErrCount or ErrType, and touches no memory. Err tells in advance.
func BufAs[T any](dt Datatype, s []T, count int) Buf { return BufAt(dt, s, 0, count) }

// BufAt is BufAs with displacement 0 of the first element at s[origin], for
// types with negative displacements or strides. There must be such an element,
// or ErrArg is given.
func BufAt[T any](dt Datatype, s []T, origin, count int) Buf {
	t, mem := dt.typ(), typeOf[T]()
	switch {
	case t.Err != nil:
		return badBuf(t, ErrType, -1, -1, "", t.Err)
	case mem.Err != nil && t.Owner() != any(reflect.TypeFor[T]()):
		return badBuf(t, ErrType, -1, -1, "", mem.Err)
	case count < 0:
		return badBuf(t, ErrCount, int64(count), -1, "elements", nil)
	case origin < 0 || origin > max(len(s)-1, 0):
		return badBuf(t, ErrArg, -1, -1, "", fmt.Errorf("origin %d of a slice of %d elements", origin, len(s)))
	case count == 0 || t.Size == 0:
		return Buf{buffer.New(nil, 0, t)}
	case int64(count) > engine.MaxBytes/t.Size:
		return badBuf(t, ErrCount, int64(count), engine.MaxBytes/t.Size, "elements", fmt.Errorf("of %d bytes each are too long for a message", t.Size))
	}
	lo, hi, ok := t.Reach(int64(count))
	at, have := int64(origin)*mem.Size, int64(len(s))*mem.Size
	if !ok || lo < -at || hi > have-at {
		return badBuf(t, ErrCount, int64(count), -1, "elements", fmt.Errorf(
			"they reach from byte %d to byte %d, counted from element %d of a slice of %d elements of %d bytes", lo, hi, origin, len(s), mem.Size))
	}
	return Buf{buffer.New(unsafe.Pointer(&s[origin]), int64(count), t)}
}

// badBuf is an empty Buf whose use fails.
func badBuf(t *dtype.Type, class Class, got, want int64, unit string, why error) Buf {
	err := &Error{Class: class, Op: "BufAt", Peer: ProcNull, Tag: -1, Got: got, Want: want, Unit: unit, Err: why}
	return Buf{buffer.New(nil, 0, &dtype.Type{Name: t.Name, Err: err})}
}

// Err says why the Buf cannot be used, nil if it can.
func (b Buf) Err() error {
	if b.b.Type == nil {
		return nil
	}
	return b.b.Type.Err
}
