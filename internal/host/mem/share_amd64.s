// SPDX-License-Identifier: Apache-2.0

//go:build !race

#include "textflag.h"

// func hasFastStrings() bool
TEXT ·hasFastStrings(SB), NOSPLIT, $0-1
	MOVB $0, ret+0(FP)
	XORL AX, AX
	CPUID
	CMPL BX, $0x756e6547 // "Genu"ineIntel
	JNE no
	CMPL AX, $7
	JLT no
	MOVL $7, AX
	XORL CX, CX
	CPUID
	SHRL $9, BX // enhanced rep movsb
	ANDL $1, BX
	MOVB BX, ret+0(FP)
no:
	RET

// func prefetchWrite(p []byte)
TEXT ·prefetchWrite(SB), NOSPLIT, $0-24
	MOVQ p_base+0(FP), DI
	MOVQ p_len+8(FP), CX
	ADDQ DI, CX
	ANDQ $~63, DI
line:
	CMPQ DI, CX
	JGE done
	BYTE $0x0f; BYTE $0x0d; BYTE $0x0f // PREFETCHW (DI)
	ADDQ $64, DI
	JMP line
done:
	RET

// func moveString(dst, src []byte)
TEXT ·moveString(SB), NOSPLIT, $0-48
	MOVQ dst_base+0(FP), DI
	MOVQ dst_len+8(FP), CX
	MOVQ src_base+24(FP), SI
	REP
	MOVSB
	RET
