// SPDX-License-Identifier: Apache-2.0

package changepage

import "unsafe"

// unsafe: a page begins at a multiple of 8, as memory of words does.
func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
}
