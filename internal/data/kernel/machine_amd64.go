// SPDX-License-Identifier: Apache-2.0

//go:build !race

package kernel

import "sync"

// machine is asked once, when it first matters: under a hypervisor the answer
// takes many microseconds.
var machine struct {
	once sync.Once
	avx2 bool
}

// hasVectors reports whether the machine can do the routines.
func hasVectors() bool {
	machine.once.Do(func() { machine.avx2 = hasAVX2() })
	return machine.avx2
}

func hasAVX2() bool
