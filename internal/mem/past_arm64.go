// SPDX-License-Identifier: Apache-2.0

//go:build !race

package mem

// stream copies len(dst) bytes, a multiple of pastStep, to lines as a whole.
//
//go:noescape
func stream(dst, src []byte)
