// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"
	"reflect"
	"sync"

	"gompi/internal/data/dtype"
)

// The predefined element types.
var (
	tBool       = &dtype.Type{Name: "bool", Size: 1, Kind: dtype.Bool}
	tInt8       = &dtype.Type{Name: "int8", Size: 1, Kind: dtype.Int8}
	tInt16      = &dtype.Type{Name: "int16", Size: 2, Kind: dtype.Int16}
	tInt32      = &dtype.Type{Name: "int32", Size: 4, Kind: dtype.Int32}
	tInt64      = &dtype.Type{Name: "int64", Size: 8, Kind: dtype.Int64}
	tUint8      = &dtype.Type{Name: "uint8", Size: 1, Kind: dtype.Uint8}
	tUint16     = &dtype.Type{Name: "uint16", Size: 2, Kind: dtype.Uint16}
	tUint32     = &dtype.Type{Name: "uint32", Size: 4, Kind: dtype.Uint32}
	tUint64     = &dtype.Type{Name: "uint64", Size: 8, Kind: dtype.Uint64}
	tFloat32    = &dtype.Type{Name: "float32", Size: 4, Kind: dtype.Float32}
	tFloat64    = &dtype.Type{Name: "float64", Size: 8, Kind: dtype.Float64}
	tComplex64  = &dtype.Type{Name: "complex64", Size: 8, Kind: dtype.Complex64}
	tComplex128 = &dtype.Type{Name: "complex128", Size: 16, Kind: dtype.Complex128}
)

// typeOf returns the description of T. Whether T can be sent is in Err of the
// description, checked by every call.
func typeOf[T any]() *dtype.Type {
	switch any((*T)(nil)).(type) {
	case *float64:
		return tFloat64
	case *byte:
		return tUint8
	case *int, *int64:
		return tInt64
	case *int32:
		return tInt32
	case *float32:
		return tFloat32
	case *uint, *uint64, *uintptr:
		return tUint64
	case *uint32:
		return tUint32
	case *int8:
		return tInt8
	case *int16:
		return tInt16
	case *uint16:
		return tUint16
	case *bool:
		return tBool
	case *complex64:
		return tComplex64
	case *complex128:
		return tComplex128
	}
	return namedType(reflect.TypeFor[T]())
}

// named caches descriptions of all other types; they are never removed, as the
// types of a program are finite.
var named sync.Map //archtest:global a cache of facts about types: reflect.Type -> *dtype.Type

func namedType(rt reflect.Type) *dtype.Type {
	if t, ok := named.Load(rt); ok {
		return t.(*dtype.Type)
	}
	got, _ := named.LoadOrStore(rt, describeGo(rt))
	return got.(*dtype.Type)
}

// flatOf is the element of rows of a matrix, rt being one of them; nil if rt is
// something else.
func flatOf(rt reflect.Type) reflect.Type {
	if rt.Kind() != reflect.Slice {
		return nil
	}
	for rt.Kind() == reflect.Slice {
		rt = rt.Elem()
	}
	if _, why := pointerIn(rt, ""); why != "" {
		return nil
	}
	return rt
}

// describeGo describes a type of Go as one element without gaps.
func describeGo(rt reflect.Type) *dtype.Type {
	name, size := rt.String(), int64(rt.Size())
	if path, why := pointerIn(rt, ""); why != "" {
		instead := "use package mpi/value or fixed-size fields"
		if flat := flatOf(rt); flat != nil {
			instead = fmt.Sprintf("send one flat []%v that holds all rows, or package mpi/value", flat)
		}
		return &dtype.Type{Name: name, Size: size, Err: fmt.Errorf(
			"elements of type %v cannot be sent: %s is %s; %s", rt, fieldName(path), why, instead)}
	}
	if k := rt.Kind(); size > 0 && (k == reflect.Struct || k == reflect.Array) {
		return dtype.NewRecord(name, size, int64(rt.Align()), kindOf(rt), signatureOf(rt))
	}
	return &dtype.Type{Name: name, Size: size, Kind: kindOf(rt)}
}

// goType is typeOf for a type that is known by reflection.
func goType(rt reflect.Type) *dtype.Type {
	if rt.PkgPath() != "" {
		return namedType(rt)
	}
	switch rt.Kind() {
	case reflect.Bool:
		return tBool
	case reflect.Int8:
		return tInt8
	case reflect.Int16:
		return tInt16
	case reflect.Int32:
		return tInt32
	case reflect.Int, reflect.Int64:
		return tInt64
	case reflect.Uint8:
		return tUint8
	case reflect.Uint16:
		return tUint16
	case reflect.Uint32:
		return tUint32
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return tUint64
	case reflect.Float32:
		return tFloat32
	case reflect.Float64:
		return tFloat64
	case reflect.Complex64:
		return tComplex64
	case reflect.Complex128:
		return tComplex128
	}
	return namedType(rt)
}

// signatureOf lists the numbers in the memory of a type without pointers, and
// the padding between them.
func signatureOf(rt reflect.Type) (s []dtype.Run) {
	switch rt.Kind() {
	case reflect.Array:
		return dtype.AppendRun(nil, int64(rt.Len()), signatureOf(rt.Elem()))
	case reflect.Struct:
		end := uintptr(0)
		for i := range rt.NumField() {
			f := rt.Field(i)
			s = appendPadding(s, f.Offset-end)
			if f.Name == "_" {
				s = appendPadding(s, f.Type.Size())
			} else {
				s = dtype.AppendRun(s, 1, signatureOf(f.Type))
			}
			end = f.Offset + f.Type.Size()
		}
		return appendPadding(s, rt.Size()-end)
	}
	return (&dtype.Type{Size: int64(rt.Size()), Kind: kindOf(rt)}).Signature()
}

func appendPadding(s []dtype.Run, n uintptr) []dtype.Run {
	return dtype.AppendRun(s, int64(n), []dtype.Run{{N: 1}})
}

func fieldName(path string) string {
	if path == "" {
		return "it"
	}
	return "field " + path[1:]
}

// pointerIn finds the first part of rt that holds a pointer.
func pointerIn(rt reflect.Type, path string) (where, why string) {
	switch k := rt.Kind(); k {
	case reflect.Struct:
		for i := range rt.NumField() {
			f := rt.Field(i)
			if w, why := pointerIn(f.Type, path+"."+f.Name); why != "" {
				return w, why
			}
		}
	case reflect.Array:
		if rt.Len() > 0 {
			return pointerIn(rt.Elem(), path)
		}
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
	case reflect.Pointer:
		return path, "a pointer (" + rt.String() + ")"
	case reflect.Interface:
		return path, "an interface (" + rt.String() + ")"
	default:
		return path, "a " + k.String() + " (" + rt.String() + ")"
	}
	return "", ""
}

func kindOf(rt reflect.Type) dtype.Kind {
	switch rt.Kind() {
	case reflect.Bool:
		return dtype.Bool
	case reflect.Int8:
		return dtype.Int8
	case reflect.Int16:
		return dtype.Int16
	case reflect.Int32:
		return dtype.Int32
	case reflect.Int, reflect.Int64:
		return dtype.Int64
	case reflect.Uint8:
		return dtype.Uint8
	case reflect.Uint16:
		return dtype.Uint16
	case reflect.Uint32:
		return dtype.Uint32
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return dtype.Uint64
	case reflect.Float32:
		return dtype.Float32
	case reflect.Float64:
		return dtype.Float64
	case reflect.Complex64:
		return dtype.Complex64
	case reflect.Complex128:
		return dtype.Complex128
	case reflect.Struct:
		return pairKind(rt)
	}
	return dtype.Opaque
}
