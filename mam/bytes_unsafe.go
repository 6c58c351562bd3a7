// SPDX-License-Identifier: Apache-2.0

package mam

// unsafe: data that arrives before the program has said its type is memory of the module,
// which becomes a slice of that type.

import "unsafe"

// bytesOf is the same memory.
func bytesOf[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// sliceOf is the same memory, which wordsAsBytes has given, as elements without pointers.
func sliceOf[T any](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}

// sameMemory reports whether two slices are of the same bytes of memory.
func sameMemory(a, b []byte) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

// one is a value as a slice.
func one[T any](x *T) []T { return unsafe.Slice(x, 1) }

// wordsAsBytes is the same memory, for elements without pointers: none of them is aligned
// to more than eight bytes.
func wordsAsBytes(words []uint64, bytes int64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), bytes)
}
