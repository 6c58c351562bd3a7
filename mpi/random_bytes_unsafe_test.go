// SPDX-License-Identifier: Apache-2.0

package mpi_test

import "unsafe"

// bytesOf is the memory of a result: the oracle predicts bytes, as equality of
// floating point numbers is not identity of bits.
func bytesOf[T any](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}
