// SPDX-License-Identifier: Apache-2.0

//go:build linux

package segment

// unsafe: the kernel is asked which pages of ordinary memory there are, and
// each that is not is written once.

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// HeapStep is the length of memory from which on Heap is worth its price.
const HeapStep = ReserveStep

// Heap makes sure that mem, zeroed memory of this process that nobody else uses
// yet, can be touched: Go's allocator promises addresses, and the kernel finds
// pages at the first write or kills. The error is a *NoMemoryError. What Go had
// before is there and asks for nothing. Cost: Check, and the pages.
func (m *Memory) PopulateHeap(mem []byte) error {
	page := os.Getpagesize()
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(mem))) & uintptr(page-1))
	if len(mem) < skip+page {
		return nil
	}
	pages := mem[skip : len(mem)-(len(mem)-skip)%page]
	absent, there := int64(0), make([]byte, ReserveStep/page)
	eachStep(pages, there, page, func(step, there []byte) int {
		for _, x := range there {
			absent += int64(page) * int64(^x&1)
		}
		return len(step)
	})
	if absent == 0 {
		return nil
	}
	return m.Take(absent, func(k int64) error {
		used := 0
		eachStep(pages, there, page, func(step, there []byte) int {
			for i, x := range there {
				if x&1 == 0 && k > 0 {
					step[i*page] = 0
					k -= int64(page)
				}
			}
			if k > 0 {
				used += len(step)
				return len(step)
			}
			return 0
		})
		pages = pages[used:]
		return nil
	})
}

// eachStep calls f for pieces of memory with a byte for each page, of which bit
// 0 says whether it is there, until f takes less than it is given.
func eachStep(mem, there []byte, page int, f func(step, there []byte) int) {
	for len(mem) > 0 {
		step := mem[:min(len(mem), ReserveStep)]
		vec := there[:len(step)/page]
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(step))), uintptr(len(step)), uintptr(unsafe.Pointer(unsafe.SliceData(vec))))
		if errno != 0 {
			clear(vec) // such as a kernel that does not tell
		}
		n := f(step, vec)
		if n < len(step) {
			return
		}
		mem = mem[n:]
	}
}
