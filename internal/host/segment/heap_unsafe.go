// SPDX-License-Identifier: Apache-2.0

//go:build linux

package segment

// unsafe: the kernel is asked which pages of ordinary memory exist, and each missing page is
// written once.

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// HeapStep is the least size of memory for which PopulateHeap pays.
const HeapStep = ReserveStep

// PopulateHeap makes sure that mem can be touched. mem must be zeroed memory of this process
// that is not in use yet. Go's allocator only promises addresses: the kernel finds a page at
// the first write, or kills the process. The error is a *NoMemoryError. Pages that Go had
// before need no memory. The cost is that of Check, and of the pages.
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

// eachStep calls f for successive pieces of mem, with a byte for each page: bit 0 says whether
// the page exists. f returns how many bytes it has used. eachStep ends when f uses less than
// it got.
func eachStep(mem, there []byte, page int, f func(step, there []byte) int) {
	for len(mem) > 0 {
		step := mem[:min(len(mem), ReserveStep)]
		vec := there[:len(step)/page]
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(step))), uintptr(len(step)), uintptr(unsafe.Pointer(unsafe.SliceData(vec))))
		if errno != 0 {
			clear(vec) // the kernel does not tell
		}
		n := f(step, vec)
		if n < len(step) {
			return
		}
		mem = mem[n:]
	}
}
