// SPDX-License-Identifier: Apache-2.0

package kernel

import "gompi/internal/data/dtype"

// table is laid out by the compiler: it costs a program nothing at start.
type table [numOps][dtype.NumKinds]Func

// loops holds the forms in Go. Where the sign of an integer does not matter
// its unsigned twin serves it.
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
		dtype.Bool: bothLoop[uint8],
		dtype.Int8: bothLoop[uint8], dtype.Int16: bothLoop[uint16], dtype.Int32: bothLoop[uint32], dtype.Int64: bothLoop[uint64],
		dtype.Uint8: bothLoop[uint8], dtype.Uint16: bothLoop[uint16], dtype.Uint32: bothLoop[uint32], dtype.Uint64: bothLoop[uint64],
	},
	LogOr: {
		dtype.Bool: eitherLoop[uint8],
		dtype.Int8: eitherLoop[uint8], dtype.Int16: eitherLoop[uint16], dtype.Int32: eitherLoop[uint32], dtype.Int64: eitherLoop[uint64],
		dtype.Uint8: eitherLoop[uint8], dtype.Uint16: eitherLoop[uint16], dtype.Uint32: eitherLoop[uint32], dtype.Uint64: eitherLoop[uint64],
	},
	LogXor: {
		dtype.Bool: oneLoop[uint8],
		dtype.Int8: oneLoop[uint8], dtype.Int16: oneLoop[uint16], dtype.Int32: oneLoop[uint32], dtype.Int64: oneLoop[uint64],
		dtype.Uint8: oneLoop[uint8], dtype.Uint16: oneLoop[uint16], dtype.Uint32: oneLoop[uint32], dtype.Uint64: oneLoop[uint64],
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
