// SPDX-License-Identifier: Apache-2.0

//go:build !race

package mem

// stream copies len(dst) bytes, a multiple of pastStep, to lines as a whole.
func stream(dst, src []byte) {
	if ask(); machine.wide {
		streamWide(dst, src)
	} else {
		streamPlain(dst, src)
	}
}

// hasWide reports registers of 32 bytes that the system keeps: AVX.
func hasWide() bool

//go:noescape
func streamWide(dst, src []byte)

//go:noescape
func streamPlain(dst, src []byte)
