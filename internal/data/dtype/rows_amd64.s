// SPDX-License-Identifier: Apache-2.0

//go:build !race

#include "textflag.h"

// DI and SI are a row's places in dst and src, R8 and R9 the steps to the next
// one, R10 the rows left, R11 the size of a row, BX where its last line
// begins, AX how much of it is moved.
#define ARGUMENTS \
	MOVQ dst+0(FP), DI \
	MOVQ src+8(FP), SI \
	MOVQ dstStep+16(FP), R8 \
	MOVQ srcStep+24(FP), R9 \
	MOVQ count+32(FP), R10 \
	MOVQ size+40(FP), R11 \
	LEAQ -64(R11), BX

#define LOAD(AT) \
	MOVOU (SI)(AT*1), X0 \
	MOVOU 16(SI)(AT*1), X1 \
	MOVOU 32(SI)(AT*1), X2 \
	MOVOU 48(SI)(AT*1), X3

#define STORE(AT) \
	MOVOU X0, (DI)(AT*1) \
	MOVOU X1, 16(DI)(AT*1) \
	MOVOU X2, 32(DI)(AT*1) \
	MOVOU X3, 48(DI)(AT*1)

// NEXT goes on with the next line of a row, then with its last one, which may
// overlap, and with the next row.
#define NEXT \
	ADDQ $64, AX \
	CMPQ AX, BX \
	JLE line \
	CMPQ AX, R11 \
	JEQ next \
	LOAD(BX) \
	STORE(BX) \
next: \
	ADDQ R8, DI \
	ADDQ R9, SI \
	DECQ R10 \
	JNE row

// func moveRows(dst, src unsafe.Pointer, dstStep, srcStep, count, size int64)
TEXT ·moveRows(SB), NOSPLIT, $0-48
	ARGUMENTS
row:
	// No fault if nothing is there.
	LEAQ (SI)(R9*2), CX
	PREFETCHT0 (CX)
	XORL AX, AX
	PCALIGN $32
line:
	LOAD(AX)
	STORE(AX)
	NEXT
	RET

// func streamRows(dst, src unsafe.Pointer, dstStep, srcStep, count, size int64)
TEXT ·streamRows(SB), NOSPLIT, $0-48
	ARGUMENTS
row:
	// What is in front of dst's first whole line goes with the bytes behind it.
	MOVQ DI, AX
	NEGQ AX
	ANDQ $63, AX
	JEQ line
	XORL CX, CX
	LOAD(CX)
	STORE(CX)
	PCALIGN $32
line:
	LOAD(AX)
	MOVNTO X0, (DI)(AX*1)
	MOVNTO X1, 16(DI)(AX*1)
	MOVNTO X2, 32(DI)(AX*1)
	MOVNTO X3, 48(DI)(AX*1)
	NEXT
	SFENCE
	RET
