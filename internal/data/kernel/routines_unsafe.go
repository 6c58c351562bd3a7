// SPDX-License-Identifier: Apache-2.0

//go:build (amd64 || arm64) && !race

package kernel

// unsafe: the routines of avx2_amd64.s and neon_arm64.s take addresses.

import "unsafe"

// The routines compute dst[i] = a[i] op b[i] for at least vectorBytes bytes.

//go:noescape
func sumFloat64Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func sumFloat32Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func sum64Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func sum32Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func sum16Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func sum8Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func prodFloat64Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func prodFloat32Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func prod32Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func prod16Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func prod8Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minFloat64Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minFloat32Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minInt64Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minInt32Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minInt16Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minInt8Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minUint64Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minUint32Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minUint16Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minUint8Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxFloat64Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxFloat32Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxInt64Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxInt32Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxInt16Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxInt8Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxUint64Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxUint32Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxUint16Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxUint8Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func bitAndVec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func bitOrVec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func bitXorVec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func logAnd8Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func logOr8Vec(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func logXor8Vec(dst, a, b unsafe.Pointer, bytes int64)
