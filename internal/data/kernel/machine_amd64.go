// SPDX-License-Identifier: Apache-2.0

//go:build !race

package kernel

import "sync"

// machine describes the processor. hasVectors fills it once, at the first use, because the
// CPUID instruction takes many microseconds under a hypervisor.
var machine struct {
	once sync.Once
	avx2 bool
}

// hasVectors reports whether the machine can run the routines in assembly.
func hasVectors() bool {
	machine.once.Do(func() { machine.avx2 = hasAVX2() })
	return machine.avx2
}

// hasAVX2 reports whether the processor has AVX2 and the system saves its registers.
func hasAVX2() bool
