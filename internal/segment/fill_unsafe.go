// SPDX-License-Identifier: Apache-2.0

//go:build linux

package segment

// unsafe: through eachStep the kernel is asked which pages of mapped memory there are, and
// pages are read one by one where it cannot be asked to map them.

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Fill makes sure that mem can be touched, and fills this process's page tables for it:
// whole pages of a shared mapping, of which others may have touched some. Only what is not
// there asks for memory: so many bytes. The error is a *NoMemoryError when that is short;
// some pages may have come then.
func (m *Memory) Fill(mem []byte) (taken int64, err error) {
	page := os.Getpagesize()
	there := make([]byte, ReserveStep/page)
	var absent []int64 // of each step
	all := int64(0)
	eachStep(mem, there, page, func(step, there []byte) int {
		n := int64(0)
		for _, x := range there {
			n += int64(page) * int64(^x&1)
		}
		absent, all = append(absent, n), all+n
		return len(step)
	})
	if all > 0 {
		if _, err := m.look(all, margin(all)); err != nil {
			return 0, err // before any of it is taken
		}
	}
	for _, n := range absent {
		step := mem[:min(len(mem), ReserveStep)]
		mem = mem[len(step):]
		if n == 0 {
			err = populate(step, unix.MADV_POPULATE_READ) // a quarter of the time, and may be written as well
		} else {
			err = m.Take(n, func(int64) error { return populate(step, unix.MADV_POPULATE_WRITE) })
		}
		if err != nil {
			return taken, err
		}
		taken += n
	}
	return taken, nil
}

func populate(mem []byte, how int) error {
	err := unix.Madvise(mem, how)
	if errors.Is(err, unix.EINVAL) { // before Linux 5.14
		for i := 0; i < len(mem); i += os.Getpagesize() {
			atomic.LoadUint32((*uint32)(unsafe.Pointer(&mem[i])))
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("populate %d bytes of shared memory: %w", len(mem), err)
	}
	return nil
}
