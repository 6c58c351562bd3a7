// SPDX-License-Identifier: Apache-2.0

//go:build !race

package mem

// stream copies len(dst) bytes, whole lines, to lines.
func stream(dst, src []byte) {
	if detect(); machine.wide {
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

// fence lets what has been streamed be seen before what is stored after it.
func fence()
