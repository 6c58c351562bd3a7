// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"reflect"

	"gompi/internal/data/dtype"
)

// Real are the types that have an order.
type Real interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64
}

// ValueIndex is an element of MinLoc and MaxLoc, which find an extreme value
// and where it is: a rank, or a row. Among equal values the lowest Index wins.
// A NaN wins over all other values, and NaNs are equal; so are 0 and -0, of
// which MinLoc gives -0 and MaxLoc 0, as Min and Max do.
//
// In memory it has 16 bytes for every T: Value at offset 0, Index at 8. Struct
// types with the same two fields serve as well. MPI 4.1 section 6.9.4.
type ValueIndex[T Real] struct {
	Value T
	Index int64
}

// pairKind is the kind of a struct: of those MinLoc knows, or opaque.
func pairKind(rt reflect.Type) dtype.Kind {
	if rt.NumField() != 2 || rt.Field(0).Name != "Value" || rt.Field(1).Name != "Index" || kindOf(rt.Field(1).Type) != dtype.Int64 {
		return dtype.Opaque
	}
	if k := kindOf(rt.Field(0).Type); dtype.Int8 <= k && k <= dtype.Float64 {
		return dtype.PairInt8 + k - dtype.Int8
	}
	return dtype.Opaque
}
