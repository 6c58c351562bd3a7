// SPDX-License-Identifier: Apache-2.0

//go:build !race

package kernel

// hasVectors: every machine has NEON.
func hasVectors() bool { return true }
