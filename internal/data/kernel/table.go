// SPDX-License-Identifier: Apache-2.0

package kernel

import "gompi/internal/data/dtype"

// table is laid out by the compiler, so it costs a program nothing at start.
type table [numOps][dtype.NumKinds]Func

// loops holds the forms in Go. If the sign of an integer does not matter, the loop for the
// unsigned type serves both.
var loops = table{
	Sum: {
		dtype.Int8: sumLoop[uint8], dtype.Int16: sumLoop[uint16], dtype.Int32: sumLoop[uint32], dtype.Int64: sumLoop[uint64],
		dtype.Uint8: sumLoop[uint8], dtype.Uint16: sumLoop[uint16], dtype.Uint32: sumLoop[uint32], dtype.Uint64: sumLoop[uint64],
		dtype.Float32: sumFloats[float32], dtype.Float64: sumFloats[float64],
		dtype.Complex64: sumComplex[float32], dtype.Complex128: sumComplex[float64],
	},
	Prod: {
		dtype.Int8: prodLoop[uint8], dtype.Int16: prodLoop[uint16], dtype.Int32: prodLoop[uint32], dtype.Int64: prodLoop[uint64],
		dtype.Uint8: prodLoop[uint8], dtype.Uint16: prodLoop[uint16], dtype.Uint32: prodLoop[uint32], dtype.Uint64: prodLoop[uint64],
		dtype.Float32: prodFloats[float32], dtype.Float64: prodFloats[float64],
		dtype.Complex64: prodComplex[float32], dtype.Complex128: prodComplex[float64],
	},
	Min: {
		dtype.Int8: minLoop[int8], dtype.Int16: minLoop[int16], dtype.Int32: minLoop[int32], dtype.Int64: minLoop[int64],
		dtype.Uint8: minLoop[uint8], dtype.Uint16: minLoop[uint16], dtype.Uint32: minLoop[uint32], dtype.Uint64: minLoop[uint64],
		dtype.Float32: minFloats[float32], dtype.Float64: minFloats[float64],
	},
	Max: {
		dtype.Int8: maxLoop[int8], dtype.Int16: maxLoop[int16], dtype.Int32: maxLoop[int32], dtype.Int64: maxLoop[int64],
		dtype.Uint8: maxLoop[uint8], dtype.Uint16: maxLoop[uint16], dtype.Uint32: maxLoop[uint32], dtype.Uint64: maxLoop[uint64],
		dtype.Float32: maxFloats[float32], dtype.Float64: maxFloats[float64],
	},
	BitAnd: {
		dtype.Int8: andLoop[uint8], dtype.Int16: andLoop[uint16], dtype.Int32: andLoop[uint32], dtype.Int64: andLoop[uint64],
		dtype.Uint8: andLoop[uint8], dtype.Uint16: andLoop[uint16], dtype.Uint32: andLoop[uint32], dtype.Uint64: andLoop[uint64],
	},
	BitOr: {
		dtype.Int8: orLoop[uint8], dtype.Int16: orLoop[uint16], dtype.Int32: orLoop[uint32], dtype.Int64: orLoop[uint64],
		dtype.Uint8: orLoop[uint8], dtype.Uint16: orLoop[uint16], dtype.Uint32: orLoop[uint32], dtype.Uint64: orLoop[uint64],
	},
	BitXor: {
		dtype.Int8: xorLoop[uint8], dtype.Int16: xorLoop[uint16], dtype.Int32: xorLoop[uint32], dtype.Int64: xorLoop[uint64],
		dtype.Uint8: xorLoop[uint8], dtype.Uint16: xorLoop[uint16], dtype.Uint32: xorLoop[uint32], dtype.Uint64: xorLoop[uint64],
	},
	LogAnd: {
		dtype.Bool: logAndLoop[uint8],
		dtype.Int8: logAndLoop[uint8], dtype.Int16: logAndLoop[uint16], dtype.Int32: logAndLoop[uint32], dtype.Int64: logAndLoop[uint64],
		dtype.Uint8: logAndLoop[uint8], dtype.Uint16: logAndLoop[uint16], dtype.Uint32: logAndLoop[uint32], dtype.Uint64: logAndLoop[uint64],
	},
	LogOr: {
		dtype.Bool: logOrLoop[uint8],
		dtype.Int8: logOrLoop[uint8], dtype.Int16: logOrLoop[uint16], dtype.Int32: logOrLoop[uint32], dtype.Int64: logOrLoop[uint64],
		dtype.Uint8: logOrLoop[uint8], dtype.Uint16: logOrLoop[uint16], dtype.Uint32: logOrLoop[uint32], dtype.Uint64: logOrLoop[uint64],
	},
	LogXor: {
		dtype.Bool: logXorLoop[uint8],
		dtype.Int8: logXorLoop[uint8], dtype.Int16: logXorLoop[uint16], dtype.Int32: logXorLoop[uint32], dtype.Int64: logXorLoop[uint64],
		dtype.Uint8: logXorLoop[uint8], dtype.Uint16: logXorLoop[uint16], dtype.Uint32: logXorLoop[uint32], dtype.Uint64: logXorLoop[uint64],
	},
	MinLoc: {
		dtype.PairInt8: minLoc[int8], dtype.PairInt16: minLoc[int16], dtype.PairInt32: minLoc[int32], dtype.PairInt64: minLoc[int64],
		dtype.PairUint8: minLoc[uint8], dtype.PairUint16: minLoc[uint16], dtype.PairUint32: minLoc[uint32], dtype.PairUint64: minLoc[uint64],
		dtype.PairFloat32: minLoc[float32], dtype.PairFloat64: minLoc[float64],
	},
	MaxLoc: {
		dtype.PairInt8: maxLoc[int8], dtype.PairInt16: maxLoc[int16], dtype.PairInt32: maxLoc[int32], dtype.PairInt64: maxLoc[int64],
		dtype.PairUint8: maxLoc[uint8], dtype.PairUint16: maxLoc[uint16], dtype.PairUint32: maxLoc[uint32], dtype.PairUint64: maxLoc[uint64],
		dtype.PairFloat32: maxLoc[float32], dtype.PairFloat64: maxLoc[float64],
	},
}
