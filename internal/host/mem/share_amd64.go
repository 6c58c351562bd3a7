// SPDX-License-Identifier: Apache-2.0

//go:build !race

package mem

import "sync"

// machine describes the processor. detect fills it once, at the first use, because the CPUID
// instruction takes many microseconds under a hypervisor.
var machine struct {
	once          sync.Once
	strings, wide bool
}

// detect fills machine.
func detect() {
	machine.once.Do(func() { machine.strings, machine.wide = hasFastStrings(), hasWide() })
}

// stringsFast reports whether moveString is the fastest way to read lines that another
// processor owns. It has more of them under way at a time than loads have.
func stringsFast() bool {
	detect()
	return machine.strings
}

// hasFastStrings reports whether this is an Intel processor with fast string instructions.
func hasFastStrings() bool

// prefetchWrite starts to fetch the lines of p for writing.
//
//go:noescape
func prefetchWrite(p []byte)

// moveString copies len(dst) bytes by one string instruction.
//
//go:noescape
func moveString(dst, src []byte)
