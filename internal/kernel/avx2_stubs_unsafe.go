// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package kernel

// unsafe: the signature of the routines of avx2_amd64.s.

import "unsafe"

func hasAVX2() bool

//go:noescape
func sumFloat64AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func sumFloat32AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func sum64AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func sum32AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func sum16AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func sum8AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func prodFloat64AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func prodFloat32AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func prod32AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func prod16AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func prod8AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minFloat64AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minFloat32AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minInt64AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minInt32AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minInt16AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minInt8AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minUint64AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minUint32AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minUint16AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func minUint8AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxFloat64AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxFloat32AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxInt64AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxInt32AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxInt16AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxInt8AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxUint64AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxUint32AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxUint16AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func maxUint8AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func bitAndAVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func bitOrAVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func bitXorAVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func logAnd8AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func logOr8AVX2(dst, a, b unsafe.Pointer, bytes int64)

//go:noescape
func logXor8AVX2(dst, a, b unsafe.Pointer, bytes int64)
