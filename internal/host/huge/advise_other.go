// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package huge

// Advise does nothing here.
func Advise([]byte) {}
