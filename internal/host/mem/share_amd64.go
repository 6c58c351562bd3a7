// SPDX-License-Identifier: Apache-2.0

//go:build !race

package mem

import "sync"

// machine is asked once, when it first matters: under a hypervisor the answer
// takes many microseconds.
var machine struct {
	once          sync.Once
	strings, wide bool
}

func detect() {
	machine.once.Do(func() { machine.strings, machine.wide = hasFastStrings(), hasWide() })
}

// stringsFast reports whether move is the fastest way to read lines that another
// processor owns: with it more of them are under way at a time than with loads.
func stringsFast() bool {
	detect()
	return machine.strings
}

// hasFastStrings reports an Intel processor with fast string instructions.
func hasFastStrings() bool

// own asks for the lines of p, to be written.
//
//go:noescape
func prefetchWrite(p []byte)

// move copies len(dst) bytes.
//
//go:noescape
func moveString(dst, src []byte)
