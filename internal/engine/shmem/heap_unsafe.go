// SPDX-License-Identifier: Apache-2.0

package shmem

// unsafe: memory with a larger alignment than Go gives.

import "unsafe"

// Aligned returns n zeroed bytes that begin at a multiple of align, a power
// of two.
func Aligned(n, align int) []byte {
	m := make([]byte, n+align)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(m))) & uintptr(align-1)
	return m[skip : skip+uintptr(n) : skip+uintptr(n)]
}
