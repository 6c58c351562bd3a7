// SPDX-License-Identifier: Apache-2.0

//go:build !race

#include "textflag.h"

// Every routine is
//
//	func(dst, a, b unsafe.Pointer, bytes int64)
//
// for at least 32 bytes. R0 is dst, R1 a, R2 b, R3 what is left in front of
// the last vector, R4 where that goes.
//
// OP(I, x, y, t) makes Vx = Vx op Vy, x of a and y of b, by means of
// instruction I. It may change y and t, and finds in V30 what CONSTANT puts
// there.
//
// The last vector is computed first and stored last. It stands in for a loop
// over what is left, also where dst is a or b.
#define KERNEL(CONSTANT, OP, I) \
	MOVD dst+0(FP), R0 \
	MOVD a+8(FP), R1 \
	MOVD b+16(FP), R2 \
	MOVD bytes+24(FP), R3 \
	CONSTANT \
	SUB $16, R3 \
	ADD R3, R0, R4 \
	ADD R3, R1, R5 \
	ADD R3, R2, R6 \
	VLD1 (R5), [V16.B16] \
	VLD1 (R6), [V4.B16] \
	OP(I, 16, 4, 20) \
	SUBS $64, R3 \
	BLT rest \
	PCALIGN $16 \
four: \
	VLD1.P 64(R1), [V0.B16, V1.B16, V2.B16, V3.B16] \
	VLD1.P 64(R2), [V4.B16, V5.B16, V6.B16, V7.B16] \
	OP(I, 0, 4, 20) \
	OP(I, 1, 5, 21) \
	OP(I, 2, 6, 22) \
	OP(I, 3, 7, 23) \
	VST1.P [V0.B16, V1.B16, V2.B16, V3.B16], 64(R0) \
	SUBS $64, R3 \
	BGE four \
rest: \
	ADDS $64, R3 \
	BEQ last \
one: \
	VLD1.P 16(R1), [V0.B16] \
	VLD1.P 16(R2), [V4.B16] \
	OP(I, 0, 4, 20) \
	VST1.P [V0.B16], 16(R0) \
	SUBS $16, R3 \
	BGT one \
last: \
	VST1 [V16.B16], (R4) \
	RET

// CONSTANT is one of these.

#define NOTHING

// Bytes of value 1.
#define TRUTHS \
	VMOVI $1, V30.B16

// The assembler knows few vector instructions. This is Vd = Vn I Vm of one
// given by its bits.
#define THREE(I, d, n, m) \
	WORD $(I | m<<16 | n<<5 | d)

// The bits, by the lanes of the vector.

#define FADD2D 0x4E60D400
#define FADD4S 0x4E20D400
#define FMUL2D 0x6E60DC00
#define FMUL4S 0x6E20DC00
#define FMIN2D 0x4EE0F400
#define FMIN4S 0x4EA0F400
#define FMAX2D 0x4E60F400
#define FMAX4S 0x4E20F400
#define FCMEQ2D 0x4E60E400
#define FCMEQ4S 0x4E20E400
#define ADD2D 0x4EE08400
#define ADD4S 0x4EA08400
#define ADD8H 0x4E608400
#define ADD16B 0x4E208400
#define MUL4S 0x4EA09C00
#define MUL8H 0x4E609C00
#define MUL16B 0x4E209C00
#define SMIN4S 0x4EA06C00
#define SMIN8H 0x4E606C00
#define SMIN16B 0x4E206C00
#define SMAX4S 0x4EA06400
#define SMAX8H 0x4E606400
#define SMAX16B 0x4E206400
#define UMIN4S 0x6EA06C00
#define UMIN8H 0x6E606C00
#define UMIN16B 0x6E206C00
#define UMAX4S 0x6EA06400
#define UMAX8H 0x6E606400
#define UMAX16B 0x6E206400
#define CMGT2D 0x4EE03400
#define CMHI2D 0x6EE03400
#define AND16B 0x4E201C00
#define ORR16B 0x4EA01C00
#define ORN16B 0x4EE01C00
#define EOR16B 0x6E201C00
#define BSL16B 0x6E601C00

// OP is one of these.

#define PLAIN(I, x, y, t) \
	THREE(I, x, x, y)

// A comparison for NaNs (what does not equal itself) gives all bits of the NaN.

#define FLOAT64(I, x, y, t) \
	THREE(I, x, x, y) \
	THREE(FCMEQ2D, t, x, x) \
	THREE(ORN16B, x, x, t)

#define FLOAT32(I, x, y, t) \
	THREE(I, x, x, y) \
	THREE(FCMEQ4S, t, x, x) \
	THREE(ORN16B, x, x, t)

// I compares: greater.

#define MIN64(I, x, y, t) \
	THREE(I, t, y, x) \
	THREE(BSL16B, t, x, y) \
	THREE(ORR16B, x, t, t)

#define MAX64(I, x, y, t) \
	THREE(I, t, x, y) \
	THREE(BSL16B, t, x, y) \
	THREE(ORR16B, x, t, t)

// Truth values; I is UMIN16B.

#define BOTH(I, x, y, t) \
	THREE(I, x, x, y) \
	THREE(I, x, x, 30)

#define EITHER(I, x, y, t) \
	THREE(ORR16B, x, x, y) \
	THREE(I, x, x, 30)

#define JUSTONE(I, x, y, t) \
	THREE(I, x, x, 30) \
	THREE(I, y, y, 30) \
	THREE(EOR16B, x, x, y)

TEXT ·sumFloat64Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, FLOAT64, FADD2D)

TEXT ·sumFloat32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, FLOAT32, FADD4S)

TEXT ·sum64Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, ADD2D)

TEXT ·sum32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, ADD4S)

TEXT ·sum16Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, ADD8H)

TEXT ·sum8Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, ADD16B)

TEXT ·prodFloat64Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, FLOAT64, FMUL2D)

TEXT ·prodFloat32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, FLOAT32, FMUL4S)

TEXT ·prod32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, MUL4S)

TEXT ·prod16Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, MUL8H)

TEXT ·prod8Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, MUL16B)

TEXT ·minFloat64Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, FLOAT64, FMIN2D)

TEXT ·minFloat32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, FLOAT32, FMIN4S)

TEXT ·minInt64Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, MIN64, CMGT2D)

TEXT ·minInt32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, SMIN4S)

TEXT ·minInt16Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, SMIN8H)

TEXT ·minInt8Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, SMIN16B)

TEXT ·minUint64Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, MIN64, CMHI2D)

TEXT ·minUint32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, UMIN4S)

TEXT ·minUint16Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, UMIN8H)

TEXT ·minUint8Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, UMIN16B)

TEXT ·maxFloat64Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, FLOAT64, FMAX2D)

TEXT ·maxFloat32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, FLOAT32, FMAX4S)

TEXT ·maxInt64Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, MAX64, CMGT2D)

TEXT ·maxInt32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, SMAX4S)

TEXT ·maxInt16Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, SMAX8H)

TEXT ·maxInt8Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, SMAX16B)

TEXT ·maxUint64Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, MAX64, CMHI2D)

TEXT ·maxUint32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, UMAX4S)

TEXT ·maxUint16Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, UMAX8H)

TEXT ·maxUint8Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, UMAX16B)

TEXT ·bitAndVec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, AND16B)

TEXT ·bitOrVec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, ORR16B)

TEXT ·bitXorVec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, EOR16B)

TEXT ·logAnd8Vec(SB), NOSPLIT, $0-32
	KERNEL(TRUTHS, BOTH, UMIN16B)

TEXT ·logOr8Vec(SB), NOSPLIT, $0-32
	KERNEL(TRUTHS, EITHER, UMIN16B)

TEXT ·logXor8Vec(SB), NOSPLIT, $0-32
	KERNEL(TRUTHS, JUSTONE, UMIN16B)
