// SPDX-License-Identifier: Apache-2.0

package value

import (
	"encoding"
	"encoding/gob"
	"reflect"
)

// typeOfKind is the type of numbers of a kind, nil if those do not travel raw.
func typeOfKind(k reflect.Kind) reflect.Type {
	switch k {
	case reflect.Int8:
		return reflect.TypeFor[int8]()
	case reflect.Int16:
		return reflect.TypeFor[int16]()
	case reflect.Int32:
		return reflect.TypeFor[int32]()
	case reflect.Int64:
		return reflect.TypeFor[int64]()
	case reflect.Uint8:
		return reflect.TypeFor[uint8]()
	case reflect.Uint16:
		return reflect.TypeFor[uint16]()
	case reflect.Uint32:
		return reflect.TypeFor[uint32]()
	case reflect.Uint64:
		return reflect.TypeFor[uint64]()
	case reflect.Float32:
		return reflect.TypeFor[float32]()
	case reflect.Float64:
		return reflect.TypeFor[float64]()
	case reflect.Complex64:
		return reflect.TypeFor[complex64]()
	case reflect.Complex128:
		return reflect.TypeFor[complex128]()
	}
	return nil
}

// numbersOf is the kind of the numbers in a slice of type t, 0 if it is none or
// encodes itself.
func numbersOf(t reflect.Type) byte {
	if t.Kind() != reflect.Slice || encodesItself(t) || encodesItself(t.Elem()) {
		return 0
	}
	k := t.Elem().Kind()
	switch k { // an int has 8 bytes: no other machines are served
	case reflect.Int:
		k = reflect.Int64
	case reflect.Uint:
		k = reflect.Uint64
	}
	if typeOfKind(k) == nil {
		return 0
	}
	return byte(k)
}

func isNumber(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Complex128 }

// class of numbers: gob converts within one.
type class uint8

const (
	signed class = iota
	unsigned
	floating
	complexes
)

func classOf(k reflect.Kind) class {
	switch {
	case k <= reflect.Int64:
		return signed
	case k <= reflect.Uintptr:
		return unsigned
	case k <= reflect.Float64:
		return floating
	}
	return complexes
}

// fits stores a number in one of the same class, if that can hold it.
func fits(x, to reflect.Value) bool {
	switch classOf(x.Kind()) {
	case signed:
		to.SetInt(x.Int())
		return !to.OverflowInt(x.Int())
	case unsigned:
		to.SetUint(x.Uint())
		return !to.OverflowUint(x.Uint())
	case floating:
		to.SetFloat(x.Float())
		return !to.OverflowFloat(x.Float())
	}
	to.SetComplex(x.Complex())
	return !to.OverflowComplex(x.Complex())
}

// encodesItself reports whether gob leaves a type to its own methods.
func encodesItself(t reflect.Type) bool {
	for _, u := range [...]reflect.Type{t, reflect.PointerTo(t)} {
		if u.Implements(reflect.TypeFor[gob.GobEncoder]()) || u.Implements(reflect.TypeFor[gob.GobDecoder]()) ||
			u.Implements(reflect.TypeFor[encoding.BinaryMarshaler]()) || u.Implements(reflect.TypeFor[encoding.BinaryUnmarshaler]()) {
			return true
		}
	}
	return false
}

// holdsInterface reports whether values of a type may have others behind
// interfaces. seen are the types that were looked at.
func holdsInterface(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] || t.Kind() != reflect.Interface && encodesItself(t) {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return holdsInterface(t.Elem(), seen)
	case reflect.Map:
		return holdsInterface(t.Key(), seen) || holdsInterface(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && holdsInterface(f.Type, seen) {
				return true
			}
		}
	}
	return false
}
