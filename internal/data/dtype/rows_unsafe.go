// SPDX-License-Identifier: Apache-2.0

//go:build race || !amd64

package dtype

// unsafe: the inner loops take addresses.

import "unsafe"

// moveRows is a loop of memmove here. The race detector does not see memory that assembly
// touches.
func moveRows(dst, src unsafe.Pointer, dstStep, srcStep, count, size int64) {
	moveLong(dst, src, dstStep, srcStep, count, size)
}

// streamRows copies through the caches here, because Go has no non-temporal stores.
func streamRows(dst, src unsafe.Pointer, dstStep, srcStep, count, size int64) {
	moveLong(dst, src, dstStep, srcStep, count, size)
}
