// SPDX-License-Identifier: Apache-2.0

//go:build !race

package kernel

// hasVectors returns true: every machine has NEON.
func hasVectors() bool { return true }
