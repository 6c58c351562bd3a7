// SPDX-License-Identifier: Apache-2.0

//go:build !race

#include "textflag.h"

// Every routine is
//
//	func(dst, a, b unsafe.Pointer, bytes int64)
//
// for at least 32 bytes. DI is dst, SI a, DX b, AX the offset in them, R8 the
// offset of the last vector, R9 that of the last four vectors.
//
// OP(I, x, y, t) makes x = x op y, x of a and y of b, by means of instruction
// I. It may change y, t and Y14, and finds in Y12 what CONSTANT puts there.
//
// The last vector is computed first and stored last. It stands in for a loop
// over what is left, also where dst is a or b.
#define KERNEL(CONSTANT, OP, I) \
	MOVQ dst+0(FP), DI \
	MOVQ a+8(FP), SI \
	MOVQ b+16(FP), DX \
	MOVQ bytes+24(FP), R8 \
	LEAQ -128(R8), R9 \
	SUBQ $32, R8 \
	CONSTANT \
	VMOVDQU (SI)(R8*1), Y15 \
	VMOVDQU (DX)(R8*1), Y4 \
	OP(I, Y15, Y4, Y8) \
	XORL AX, AX \
	CMPQ AX, R9 \
	JGT rest \
	PCALIGN $32 \
four: \
	VMOVDQU (SI)(AX*1), Y0 \
	VMOVDQU 32(SI)(AX*1), Y1 \
	VMOVDQU 64(SI)(AX*1), Y2 \
	VMOVDQU 96(SI)(AX*1), Y3 \
	VMOVDQU (DX)(AX*1), Y4 \
	VMOVDQU 32(DX)(AX*1), Y5 \
	VMOVDQU 64(DX)(AX*1), Y6 \
	VMOVDQU 96(DX)(AX*1), Y7 \
	OP(I, Y0, Y4, Y8) \
	OP(I, Y1, Y5, Y9) \
	OP(I, Y2, Y6, Y10) \
	OP(I, Y3, Y7, Y11) \
	VMOVDQU Y0, (DI)(AX*1) \
	VMOVDQU Y1, 32(DI)(AX*1) \
	VMOVDQU Y2, 64(DI)(AX*1) \
	VMOVDQU Y3, 96(DI)(AX*1) \
	ADDQ $128, AX \
	CMPQ AX, R9 \
	JLE four \
	JMP rest \
one: \
	VMOVDQU (SI)(AX*1), Y0 \
	VMOVDQU (DX)(AX*1), Y4 \
	OP(I, Y0, Y4, Y8) \
	VMOVDQU Y0, (DI)(AX*1) \
	ADDQ $32, AX \
rest: \
	CMPQ AX, R8 \
	JLT one \
	VMOVDQU Y15, (DI)(R8*1) \
	VZEROUPPER \
	RET

// CONSTANT is one of these.

#define NOTHING

// The signs of 64-bit integers.
#define SIGNS \
	VPCMPEQB Y12, Y12, Y12 \
	VPSLLQ $63, Y12, Y12

// The low bytes of 16-bit integers.
#define LOWBYTES \
	VPCMPEQB Y12, Y12, Y12 \
	VPSRLW $8, Y12, Y12

// Bytes of value 1.
#define TRUTHS \
	VPCMPEQB Y12, Y12, Y12 \
	VPABSB Y12, Y12

// OP is one of these.

#define PLAIN(I, x, y, t) \
	I y, x, x

// A comparison for NaNs (3: unordered) gives all bits of the NaN.

#define FLOAT64(I, x, y, t) \
	I y, x, x \
	VCMPPD $3, x, x, t \
	VORPD t, x, x

#define FLOAT32(I, x, y, t) \
	I y, x, x \
	VCMPPS $3, x, x, t \
	VORPS t, x, x

// Of two zeros the instruction gives the second: both orders, joined by OR or
// AND, give the sign that is wanted.

#define MINFLOAT64(I, x, y, t) \
	I y, x, t \
	I x, y, Y14 \
	VCMPPD $3, y, x, x \
	VORPD Y14, t, t \
	VORPD t, x, x

#define MAXFLOAT64(I, x, y, t) \
	I y, x, t \
	I x, y, Y14 \
	VCMPPD $3, y, x, x \
	VANDPD Y14, t, t \
	VORPD t, x, x

#define MINFLOAT32(I, x, y, t) \
	I y, x, t \
	I x, y, Y14 \
	VCMPPS $3, y, x, x \
	VORPS Y14, t, t \
	VORPS t, x, x

#define MAXFLOAT32(I, x, y, t) \
	I y, x, t \
	I x, y, Y14 \
	VCMPPS $3, y, x, x \
	VANDPS Y14, t, t \
	VORPS t, x, x

// Even and odd bytes by the multiplication of 16 bits.
#define PROD8(I, x, y, t) \
	I y, x, t \
	VPSRLW $8, x, x \
	VPSRLW $8, y, y \
	I y, x, x \
	VPSLLW $8, x, x \
	VPAND Y12, t, t \
	VPOR t, x, x

// I is VPCMPGTQ.

#define MININT64(I, x, y, t) \
	I y, x, t \
	VBLENDVPD t, y, x, x

#define MAXINT64(I, x, y, t) \
	I x, y, t \
	VBLENDVPD t, y, x, x

#define MINUINT64(I, x, y, t) \
	VPXOR Y12, x, t \
	VPXOR Y12, y, Y14 \
	I Y14, t, t \
	VBLENDVPD t, y, x, x

#define MAXUINT64(I, x, y, t) \
	VPXOR Y12, x, t \
	VPXOR Y12, y, Y14 \
	I t, Y14, t \
	VBLENDVPD t, y, x, x

// Truth values; I is VPMINUB.

#define BOTH(I, x, y, t) \
	I y, x, x \
	I Y12, x, x

#define EITHER(I, x, y, t) \
	VPOR y, x, x \
	I Y12, x, x

#define JUSTONE(I, x, y, t) \
	I Y12, x, x \
	I Y12, y, y \
	VPXOR y, x, x

TEXT ·sumFloat64Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, FLOAT64, VADDPD)

TEXT ·sumFloat32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, FLOAT32, VADDPS)

TEXT ·sum64Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPADDQ)

TEXT ·sum32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPADDD)

TEXT ·sum16Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPADDW)

TEXT ·sum8Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPADDB)

TEXT ·prodFloat64Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, FLOAT64, VMULPD)

TEXT ·prodFloat32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, FLOAT32, VMULPS)

TEXT ·prod32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPMULLD)

TEXT ·prod16Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPMULLW)

TEXT ·prod8Vec(SB), NOSPLIT, $0-32
	KERNEL(LOWBYTES, PROD8, VPMULLW)

TEXT ·minFloat64Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, MINFLOAT64, VMINPD)

TEXT ·minFloat32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, MINFLOAT32, VMINPS)

TEXT ·minInt64Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, MININT64, VPCMPGTQ)

TEXT ·minInt32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPMINSD)

TEXT ·minInt16Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPMINSW)

TEXT ·minInt8Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPMINSB)

TEXT ·minUint64Vec(SB), NOSPLIT, $0-32
	KERNEL(SIGNS, MINUINT64, VPCMPGTQ)

TEXT ·minUint32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPMINUD)

TEXT ·minUint16Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPMINUW)

TEXT ·minUint8Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPMINUB)

TEXT ·maxFloat64Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, MAXFLOAT64, VMAXPD)

TEXT ·maxFloat32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, MAXFLOAT32, VMAXPS)

TEXT ·maxInt64Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, MAXINT64, VPCMPGTQ)

TEXT ·maxInt32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPMAXSD)

TEXT ·maxInt16Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPMAXSW)

TEXT ·maxInt8Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPMAXSB)

TEXT ·maxUint64Vec(SB), NOSPLIT, $0-32
	KERNEL(SIGNS, MAXUINT64, VPCMPGTQ)

TEXT ·maxUint32Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPMAXUD)

TEXT ·maxUint16Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPMAXUW)

TEXT ·maxUint8Vec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPMAXUB)

TEXT ·bitAndVec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPAND)

TEXT ·bitOrVec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPOR)

TEXT ·bitXorVec(SB), NOSPLIT, $0-32
	KERNEL(NOTHING, PLAIN, VPXOR)

TEXT ·logAnd8Vec(SB), NOSPLIT, $0-32
	KERNEL(TRUTHS, BOTH, VPMINUB)

TEXT ·logOr8Vec(SB), NOSPLIT, $0-32
	KERNEL(TRUTHS, EITHER, VPMINUB)

TEXT ·logXor8Vec(SB), NOSPLIT, $0-32
	KERNEL(TRUTHS, JUSTONE, VPMINUB)

// func hasAVX2() bool
TEXT ·hasAVX2(SB), NOSPLIT, $0-1
	XORL AX, AX
	CPUID
	CMPL AX, $7
	JLT  no

	// The machine has AVX, and the system keeps its registers.
	MOVL $1, AX
	XORL CX, CX
	CPUID
	ANDL $(1<<27 | 1<<28), CX // OSXSAVE, AVX
	CMPL CX, $(1<<27 | 1<<28)
	JNE  no
	XORL CX, CX
	XGETBV
	ANDL $6, AX // XMM, YMM
	CMPL AX, $6
	JNE  no

	MOVL $7, AX
	XORL CX, CX
	CPUID
	BTL  $5, BX
	JCC  no
	MOVB $1, ret+0(FP)
	RET

no:
	MOVB $0, ret+0(FP)
	RET
