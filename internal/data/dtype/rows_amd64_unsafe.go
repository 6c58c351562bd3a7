// SPDX-License-Identifier: Apache-2.0

//go:build amd64 && !race

package dtype

// unsafe: the routines of rows_amd64.s take addresses.

import "unsafe"

// moveRows copies count rows of size bytes, at least 128. Rows are dstStep and srcStep bytes
// apart. It prefetches two rows ahead, also beyond the last one.
//
//go:noescape
func moveRows(dst, src unsafe.Pointer, dstStep, srcStep, count, size int64)

// streamRows is moveRows with non-temporal stores.
//
//go:noescape
func streamRows(dst, src unsafe.Pointer, dstStep, srcStep, count, size int64)
