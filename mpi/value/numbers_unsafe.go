// SPDX-License-Identifier: Apache-2.0

package value

import (
	"fmt"
	"reflect"
	"unsafe"
)

// unsafe: numbers travel as the bytes that they are. All processes of a job
// have the same byte order; who has another is refused when it connects.

// appendNumbers appends the numbers of the slice that v points to.
func appendNumbers(head []byte, v any) []byte {
	s := bytesOf(reflect.ValueOf(v).Elem())
	b := make([]byte, len(head)+len(s))
	copy(b, head)
	copy(b[len(head):], s)
	return b
}

// bytesOf is the memory of a slice of numbers.
func bytesOf(s reflect.Value) []byte {
	return unsafe.Slice((*byte)(s.UnsafePointer()), s.Len()*int(s.Type().Elem().Size()))
}

// memoryOf is the memory of a slice of numbers.
func memoryOf[T number](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// setNumbers makes what v points to a slice of the numbers of a kind in b.
func setNumbers(b []byte, kind byte, v any) error {
	to := pointee(reflect.ValueOf(v).Elem())
	from := typeOfKind(reflect.Kind(kind))
	want := reflect.Kind(numbersOf(to.Type()))
	switch {
	case from == nil || len(b)%int(from.Size()) != 0:
		return fmt.Errorf("%d bytes of numbers of kind %d", len(b), kind)
	case want == reflect.Invalid || classOf(want) != classOf(from.Kind()):
		return fmt.Errorf("a slice of %v cannot be received as %v", from, to.Type())
	}
	n := len(b) / int(from.Size())
	if n == 0 {
		return nil
	}
	s := reflect.MakeSlice(to.Type(), n, n)
	if want == from.Kind() {
		copy(bytesOf(s), b)
		to.Set(s)
		return nil
	}
	numbers := reflect.MakeSlice(reflect.SliceOf(from), n, n)
	copy(bytesOf(numbers), b)
	for i := range n {
		if x := numbers.Index(i); !fits(x, s.Index(i)) {
			return fmt.Errorf("element %d, %v, does not fit into %v", i, x, s.Type().Elem())
		}
	}
	to.Set(s)
	return nil
}
