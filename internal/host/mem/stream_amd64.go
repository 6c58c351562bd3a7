// SPDX-License-Identifier: Apache-2.0

//go:build !race

package mem

// stream copies len(dst) bytes with non-temporal stores. dst must be whole cache lines.
func stream(dst, src []byte) {
	if detect(); machine.wide {
		streamWide(dst, src)
	} else {
		streamPlain(dst, src)
	}
}

// hasWide reports whether the processor has AVX and the system saves its registers.
func hasWide() bool

// streamWide is stream with registers of 32 bytes.
//
//go:noescape
func streamWide(dst, src []byte)

// streamPlain is stream with registers of 16 bytes.
//
//go:noescape
func streamPlain(dst, src []byte)

// fence makes streamed data visible before later stores.
func fence()
