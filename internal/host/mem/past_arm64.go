// SPDX-License-Identifier: Apache-2.0

//go:build !race

package mem

// stream copies len(dst) bytes, whole lines, to lines.
//
//go:noescape
func stream(dst, src []byte)

// fence lets what has been streamed be seen before what is stored after it.
func fence()
