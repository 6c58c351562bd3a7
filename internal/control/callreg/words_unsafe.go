// SPDX-License-Identifier: Apache-2.0

package callreg

import (
	"sync/atomic"
	"unsafe"
)

// countersOf returns the counters of a registry as the owner's plain numbers.
func countersOf(w []atomic.Uint64) *Counters {
	return (*Counters)(unsafe.Pointer(&w[offCounters/8]))
}

// words returns mapped memory as words. Two processes use it at once, so every access must be
// atomic, and Go has atomics for words but not for bytes. mem must not be empty. The result
// does not keep the memory alive: a mapping lives until it is unmapped. ok is false if mem does
// not begin at a word.
func words(mem []byte) (w []atomic.Uint64, ok bool) {
	p := unsafe.Pointer(&mem[0])
	if uintptr(p)%8 != 0 {
		return nil, false
	}
	return unsafe.Slice((*atomic.Uint64)(p), len(mem)/8), true
}
