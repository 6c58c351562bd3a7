// SPDX-License-Identifier: Apache-2.0

//go:build race || !amd64

package dtype

// unsafe: the signature of the inner loops.

import "unsafe"

// moveRows is a loop of memmove. So it is under the race detector, which does
// not see what assembly touches.
func moveRows(dst, src unsafe.Pointer, dstStep, srcStep, count, size int64) {
	moveLong(dst, src, dstStep, srcStep, count, size)
}

// streamRows: Go cannot write around the caches here.
func streamRows(dst, src unsafe.Pointer, dstStep, srcStep, count, size int64) {
	moveLong(dst, src, dstStep, srcStep, count, size)
}
