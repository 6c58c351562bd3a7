// SPDX-License-Identifier: Apache-2.0

//go:build amd64 && !race

package dtype

// unsafe: the signature of the routines of rows_amd64.s.

import "unsafe"

// moveRows copies count rows of size bytes, at least 128, between places
// dstStep and srcStep bytes apart. It has the processor look up two rows ahead,
// which may be beyond the last.
//
//go:noescape
func moveRows(dst, src unsafe.Pointer, dstStep, srcStep, count, size int64)

// streamRows is moveRows that writes around the caches.
//
//go:noescape
func streamRows(dst, src unsafe.Pointer, dstStep, srcStep, count, size int64)
