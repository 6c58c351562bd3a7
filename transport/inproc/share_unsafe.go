// SPDX-License-Identifier: Apache-2.0

package inproc

// unsafe: the memory needs a larger alignment than Go gives.

import (
	"unsafe"

	"gompi/transport"
)

// alignedBytes returns n zeroed bytes that begin at a multiple of ShareAlign.
func alignedBytes(n int) []byte {
	m := make([]byte, n+transport.ShareAlign)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(m))) % transport.ShareAlign
	return m[skip : skip+uintptr(n) : skip+uintptr(n)]
}
