// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package huge

// Advise does nothing: only Linux has huge pages here.
func Advise([]byte) {}
