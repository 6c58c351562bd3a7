// SPDX-License-Identifier: Apache-2.0

//go:build !race

#include "textflag.h"

// STNP Qn, Qm, [R0, #at] stores a pair of 16 bytes with the hint that they are not used
// soon. The assembler does not know the instruction.
#define STNP(n, m, at) WORD $(0xac000000 | (at / 16) << 15 | m << 10 | 0 << 5 | n)

// func stream(dst, src []byte)
TEXT ·stream(SB), NOSPLIT, $0-48
	MOVD dst_base+0(FP), R0
	MOVD dst_len+8(FP), R2
	MOVD src_base+24(FP), R1
	ADD R0, R2, R2
	SUB $64, R2, R2
more:
	CMP R2, R0
	BHS last
	VLD1.P 64(R1), [V0.B16, V1.B16, V2.B16, V3.B16]
	VLD1.P 64(R1), [V4.B16, V5.B16, V6.B16, V7.B16]
	STNP(0, 1, 0)
	STNP(2, 3, 32)
	STNP(4, 5, 64)
	STNP(6, 7, 96)
	ADD $128, R0, R0
	B more
last:
	BNE done
	VLD1.P 64(R1), [V0.B16, V1.B16, V2.B16, V3.B16]
	STNP(0, 1, 0)
	STNP(2, 3, 32)
done:
	RET

// func fence()
TEXT ·fence(SB), NOSPLIT, $0-0
	DMB $10 // ISHST: earlier stores before later ones
	RET
