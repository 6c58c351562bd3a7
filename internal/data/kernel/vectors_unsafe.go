// SPDX-License-Identifier: Apache-2.0

//go:build (amd64 || arm64) && !race

package kernel

// unsafe: kernels take addresses.

import (
	"unsafe"

	"gompi/internal/data/dtype"
)

const (
	vectorBytes = 32
	// chunkBytes is the work of one call of assembly. Its goroutine cannot be preempted
	// during the call, which takes some microseconds.
	chunkBytes = 64 << 10
)

// run processes n elements by a routine in assembly, or by its twin in Go if they are too
// few for a vector.
func run(routine, twin Func, dst, a, b unsafe.Pointer, n, size int64) {
	bytes := n * size
	if bytes < vectorBytes || !hasVectors() {
		twin(dst, a, b, n)
		return
	}
	for ; bytes >= 2*chunkBytes; bytes -= chunkBytes {
		routine(dst, a, b, chunkBytes)
		dst, a, b = unsafe.Add(dst, chunkBytes), unsafe.Add(a, chunkBytes), unsafe.Add(b, chunkBytes)
	}
	routine(dst, a, b, bytes)
}

var vectors = table{
	Sum: {
		dtype.Int8: sum8, dtype.Int16: sum16, dtype.Int32: sum32, dtype.Int64: sum64,
		dtype.Uint8: sum8, dtype.Uint16: sum16, dtype.Uint32: sum32, dtype.Uint64: sum64,
		dtype.Float32: sumFloat32, dtype.Float64: sumFloat64,
		dtype.Complex64: sumComplex64, dtype.Complex128: sumComplex128,
	},
	Prod: {
		dtype.Int8: prod8, dtype.Int16: prod16, dtype.Int32: prod32,
		dtype.Uint8: prod8, dtype.Uint16: prod16, dtype.Uint32: prod32,
		dtype.Float32: prodFloat32, dtype.Float64: prodFloat64,
	},
	Min: {
		dtype.Int8: minInt8, dtype.Int16: minInt16, dtype.Int32: minInt32, dtype.Int64: minInt64,
		dtype.Uint8: minUint8, dtype.Uint16: minUint16, dtype.Uint32: minUint32, dtype.Uint64: minUint64,
		dtype.Float32: minFloat32, dtype.Float64: minFloat64,
	},
	Max: {
		dtype.Int8: maxInt8, dtype.Int16: maxInt16, dtype.Int32: maxInt32, dtype.Int64: maxInt64,
		dtype.Uint8: maxUint8, dtype.Uint16: maxUint16, dtype.Uint32: maxUint32, dtype.Uint64: maxUint64,
		dtype.Float32: maxFloat32, dtype.Float64: maxFloat64,
	},
	BitAnd: {
		dtype.Int8: bitAnd[uint8], dtype.Int16: bitAnd[uint16], dtype.Int32: bitAnd[uint32], dtype.Int64: bitAnd[uint64],
		dtype.Uint8: bitAnd[uint8], dtype.Uint16: bitAnd[uint16], dtype.Uint32: bitAnd[uint32], dtype.Uint64: bitAnd[uint64],
	},
	BitOr: {
		dtype.Int8: bitOr[uint8], dtype.Int16: bitOr[uint16], dtype.Int32: bitOr[uint32], dtype.Int64: bitOr[uint64],
		dtype.Uint8: bitOr[uint8], dtype.Uint16: bitOr[uint16], dtype.Uint32: bitOr[uint32], dtype.Uint64: bitOr[uint64],
	},
	BitXor: {
		dtype.Int8: bitXor[uint8], dtype.Int16: bitXor[uint16], dtype.Int32: bitXor[uint32], dtype.Int64: bitXor[uint64],
		dtype.Uint8: bitXor[uint8], dtype.Uint16: bitXor[uint16], dtype.Uint32: bitXor[uint32], dtype.Uint64: bitXor[uint64],
	},
	LogAnd: {
		dtype.Bool: logAnd8, dtype.Int8: logAnd8, dtype.Uint8: logAnd8,
	},
	LogOr: {
		dtype.Bool: logOr8, dtype.Int8: logOr8, dtype.Uint8: logOr8,
	},
	LogXor: {
		dtype.Bool: logXor8, dtype.Int8: logXor8, dtype.Uint8: logXor8,
	},
}

func sumFloat64(dst, a, b unsafe.Pointer, n int64) {
	run(sumFloat64Vec, sumFloats[float64], dst, a, b, n, 8)
}

func sumFloat32(dst, a, b unsafe.Pointer, n int64) {
	run(sumFloat32Vec, sumFloats[float32], dst, a, b, n, 4)
}

func sumComplex64(dst, a, b unsafe.Pointer, n int64)  { sumFloat32(dst, a, b, 2*n) }
func sumComplex128(dst, a, b unsafe.Pointer, n int64) { sumFloat64(dst, a, b, 2*n) }

func sum64(dst, a, b unsafe.Pointer, n int64) {
	run(sum64Vec, sumLoop[uint64], dst, a, b, n, 8)
}

func sum32(dst, a, b unsafe.Pointer, n int64) {
	run(sum32Vec, sumLoop[uint32], dst, a, b, n, 4)
}

func sum16(dst, a, b unsafe.Pointer, n int64) {
	run(sum16Vec, sumLoop[uint16], dst, a, b, n, 2)
}

func sum8(dst, a, b unsafe.Pointer, n int64) {
	run(sum8Vec, sumLoop[uint8], dst, a, b, n, 1)
}

func prodFloat64(dst, a, b unsafe.Pointer, n int64) {
	run(prodFloat64Vec, prodFloats[float64], dst, a, b, n, 8)
}

func prodFloat32(dst, a, b unsafe.Pointer, n int64) {
	run(prodFloat32Vec, prodFloats[float32], dst, a, b, n, 4)
}

func prod32(dst, a, b unsafe.Pointer, n int64) {
	run(prod32Vec, prodLoop[uint32], dst, a, b, n, 4)
}

func prod16(dst, a, b unsafe.Pointer, n int64) {
	run(prod16Vec, prodLoop[uint16], dst, a, b, n, 2)
}

func prod8(dst, a, b unsafe.Pointer, n int64) {
	run(prod8Vec, prodLoop[uint8], dst, a, b, n, 1)
}

func minFloat64(dst, a, b unsafe.Pointer, n int64) {
	run(minFloat64Vec, minFloats[float64], dst, a, b, n, 8)
}

func minFloat32(dst, a, b unsafe.Pointer, n int64) {
	run(minFloat32Vec, minFloats[float32], dst, a, b, n, 4)
}

func minInt64(dst, a, b unsafe.Pointer, n int64) {
	run(minInt64Vec, minLoop[int64], dst, a, b, n, 8)
}

func minInt32(dst, a, b unsafe.Pointer, n int64) {
	run(minInt32Vec, minLoop[int32], dst, a, b, n, 4)
}

func minInt16(dst, a, b unsafe.Pointer, n int64) {
	run(minInt16Vec, minLoop[int16], dst, a, b, n, 2)
}

func minInt8(dst, a, b unsafe.Pointer, n int64) {
	run(minInt8Vec, minLoop[int8], dst, a, b, n, 1)
}

func minUint64(dst, a, b unsafe.Pointer, n int64) {
	run(minUint64Vec, minLoop[uint64], dst, a, b, n, 8)
}

func minUint32(dst, a, b unsafe.Pointer, n int64) {
	run(minUint32Vec, minLoop[uint32], dst, a, b, n, 4)
}

func minUint16(dst, a, b unsafe.Pointer, n int64) {
	run(minUint16Vec, minLoop[uint16], dst, a, b, n, 2)
}

func minUint8(dst, a, b unsafe.Pointer, n int64) {
	run(minUint8Vec, minLoop[uint8], dst, a, b, n, 1)
}

func maxFloat64(dst, a, b unsafe.Pointer, n int64) {
	run(maxFloat64Vec, maxFloats[float64], dst, a, b, n, 8)
}

func maxFloat32(dst, a, b unsafe.Pointer, n int64) {
	run(maxFloat32Vec, maxFloats[float32], dst, a, b, n, 4)
}

func maxInt64(dst, a, b unsafe.Pointer, n int64) {
	run(maxInt64Vec, maxLoop[int64], dst, a, b, n, 8)
}

func maxInt32(dst, a, b unsafe.Pointer, n int64) {
	run(maxInt32Vec, maxLoop[int32], dst, a, b, n, 4)
}

func maxInt16(dst, a, b unsafe.Pointer, n int64) {
	run(maxInt16Vec, maxLoop[int16], dst, a, b, n, 2)
}

func maxInt8(dst, a, b unsafe.Pointer, n int64) {
	run(maxInt8Vec, maxLoop[int8], dst, a, b, n, 1)
}

func maxUint64(dst, a, b unsafe.Pointer, n int64) {
	run(maxUint64Vec, maxLoop[uint64], dst, a, b, n, 8)
}

func maxUint32(dst, a, b unsafe.Pointer, n int64) {
	run(maxUint32Vec, maxLoop[uint32], dst, a, b, n, 4)
}

func maxUint16(dst, a, b unsafe.Pointer, n int64) {
	run(maxUint16Vec, maxLoop[uint16], dst, a, b, n, 2)
}

func maxUint8(dst, a, b unsafe.Pointer, n int64) {
	run(maxUint8Vec, maxLoop[uint8], dst, a, b, n, 1)
}

func bitAnd[T unsigned](dst, a, b unsafe.Pointer, n int64) {
	run(bitAndVec, andLoop[T], dst, a, b, n, int64(unsafe.Sizeof(T(0))))
}

func bitOr[T unsigned](dst, a, b unsafe.Pointer, n int64) {
	run(bitOrVec, orLoop[T], dst, a, b, n, int64(unsafe.Sizeof(T(0))))
}

func bitXor[T unsigned](dst, a, b unsafe.Pointer, n int64) {
	run(bitXorVec, xorLoop[T], dst, a, b, n, int64(unsafe.Sizeof(T(0))))
}

func logAnd8(dst, a, b unsafe.Pointer, n int64) {
	run(logAnd8Vec, logAndLoop[uint8], dst, a, b, n, 1)
}

func logOr8(dst, a, b unsafe.Pointer, n int64) {
	run(logOr8Vec, logOrLoop[uint8], dst, a, b, n, 1)
}

func logXor8(dst, a, b unsafe.Pointer, n int64) {
	run(logXor8Vec, logXorLoop[uint8], dst, a, b, n, 1)
}
