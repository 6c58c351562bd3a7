// SPDX-License-Identifier: Apache-2.0

//go:build race

package mpitest

// slower is how much longer the race detector may take.
const slower = 6
