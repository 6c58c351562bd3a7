// SPDX-License-Identifier: Apache-2.0

//go:build !race

package mem

// stream copies len(dst) bytes with non-temporal stores. dst must be whole cache lines.
//
//go:noescape
func stream(dst, src []byte)

// fence makes streamed data visible before later stores.
func fence()
