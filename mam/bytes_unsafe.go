// SPDX-License-Identifier: Apache-2.0

package mam

// unsafe: data may arrive before the program has said its type. It is memory of the module then,
// which becomes a slice of that type later.

import "unsafe"

// bytesOf returns the memory of a slice as bytes.
func bytesOf[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// sliceOf returns memory of wordsAsBytes as elements without pointers.
func sliceOf[T any](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}

// sameMemory reports whether two slices are the same bytes of memory.
func sameMemory(a, b []byte) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

// sliceOfOne returns a value as a slice.
func sliceOfOne[T any](x *T) []T { return unsafe.Slice(x, 1) }

// wordsAsBytes returns the memory of words as bytes. Elements without pointers are aligned to
// eight bytes at most, so it holds any of them.
func wordsAsBytes(words []uint64, bytes int64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), bytes)
}
