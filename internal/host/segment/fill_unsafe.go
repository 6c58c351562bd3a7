// SPDX-License-Identifier: Apache-2.0

//go:build linux

package segment

// unsafe: pages are read one by one if the kernel cannot map them by a call.

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gompi/internal/host/huge"
)

// Fill makes huge pages in calls of hugeStep bytes, if at least hugeLeast bytes are missing:
// for less a call does not pay. A call of more than hugeSlow is the last one. Small pages
// would then be faster, even on a machine with eight busy threads for each processor.
const (
	hugeStep  = 32 << 20
	hugeLeast = 8 << 20
	hugeSlow  = 500 * time.Millisecond

	_ = uint(-(hugeStep % huge.PageBytes))
)

// hole is the bytes [lo, hi) of a file.
type hole struct{ lo, hi int64 }

// Fill makes sure that the bytes [lo, hi) of an arena can be touched, and fills this
// process's page tables for them. lo and hi are at pages of the file fd, and mem maps the
// whole file. Other processes may touch or Fill the same bytes before or meanwhile. Fill
// asks for memory only for missing pages. It returns the number of bytes of these. It makes
// huge pages where whole ones are missing and the system supports them. The error is a
// *NoMemoryError if memory is short; some pages may then exist.
func (m *Memory) Fill(fd int, mem []byte, lo, hi int64) (taken int64, err error) {
	missing, all := holes(fd, mem, lo, hi), int64(0)
	for _, h := range missing {
		all += h.hi - h.lo
	}
	if all > 0 {
		if _, err := m.checkFree(all, ReserveStep, margin(all)); err != nil {
			return 0, err // before any memory is taken
		}
	}
	for _, h := range append(missing, hole{hi, hi}) {
		if err := populate(mem[lo:h.lo], unix.MADV_POPULATE_READ); err != nil { // a quarter of the time of a write, and the pages can be written as well
			return taken, err
		}
		if err := m.fillHole(fd, mem, h); err != nil {
			return taken, err
		}
		lo, taken = h.hi, taken+h.hi-h.lo
	}
	return taken, nil
}

// holes returns the parts of [lo, hi) without pages, for a file that mem maps. The size of
// the file tells whether it has any. holes then asks for each page: SEEK_HOLE would search
// beyond hi, and serves one process at a time.
func holes(fd int, mem []byte, lo, hi int64) (list []hole) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err == nil && st.Blocks*512 >= st.Size {
		return nil
	}
	page, at := os.Getpagesize(), lo
	eachStep(mem[lo:hi], make([]byte, ReserveStep/page), page, func(step, there []byte) int {
		for _, x := range there {
			if n := len(list); x&1 == 0 && n > 0 && list[n-1].hi == at {
				list[n-1].hi += int64(page)
			} else if x&1 == 0 {
				list = append(list, hole{at, at + int64(page)})
			}
			at += int64(page)
		}
		return len(step)
	})
	return list
}

// fillHole is Fill for bytes that are missing.
func (m *Memory) fillHole(fd int, mem []byte, h hole) error {
	if m.Small || h.hi-h.lo < hugeLeast || !onHugePage(mem) {
		return m.fillSmall(mem[h.lo:h.hi])
	}
	switch huge.SharedMode() {
	case huge.Advised:
		huge.Advise(mem)
	case huge.Collapsed:
		lo := (h.lo + huge.PageBytes - 1) &^ (huge.PageBytes - 1)
		if err := m.fillSmall(mem[h.lo:lo]); err != nil {
			return err
		}
		done, err := m.fillHuge(mem[lo : h.hi&^(huge.PageBytes-1)])
		if err != nil {
			return err
		}
		for _, h := range holes(fd, mem, lo+done, h.hi) {
			if err := m.fillSmall(mem[h.lo:h.hi]); err != nil {
				return err
			}
		}
		return populate(mem[lo+done:h.hi], unix.MADV_POPULATE_READ) // pages that others have filled meanwhile
	}
	return m.fillSmall(mem[h.lo:h.hi])
}

// fillSmall is Fill with small pages.
func (m *Memory) fillSmall(mem []byte) error {
	return m.Take(int64(len(mem)), func(k int64) error {
		piece := mem[:k]
		mem = mem[k:]
		return populate(piece, unix.MADV_POPULATE_WRITE)
	})
}

// fillHuge is Fill for whole huge pages that are missing. It returns the number of bytes that
// it filled before the kernel refused to go on, which is no error. Some of the other pages
// may exist then. Unlike small pages, huge pages never get a process killed: if the memory
// cgroup has no room, the kernel refuses the page.
func (m *Memory) fillHuge(mem []byte) (done int64, err error) {
	err = m.take(int64(len(mem)), hugeStep, func(k int64) error {
		began, piece := time.Now(), mem[done:done+k]
		for i := 0; i < len(piece); i += huge.PageBytes { // the kernel needs one small page in each
			if err := populate(piece[i:i+os.Getpagesize()], unix.MADV_POPULATE_WRITE); err != nil {
				return err
			}
		}
		err := huge.Collapse(piece)
		if errors.Is(err, unix.EAGAIN) {
			err = huge.Collapse(piece)
		}
		if err == nil {
			err = populate(piece, unix.MADV_POPULATE_READ)
		}
		if err != nil {
			return err
		}
		if done += k; time.Since(began) > hugeSlow {
			return errSlow
		}
		return nil
	})
	var short *NoMemoryError
	if errors.As(err, &short) {
		return done, err
	}
	return done, nil
}

var errSlow = errors.New("making huge pages is slow here")

// populate fills the page tables of mapped memory.
func populate(mem []byte, how int) error {
	if len(mem) == 0 {
		return nil
	}
	err := unix.Madvise(mem, how)
	if errors.Is(err, unix.EINVAL) { // Linux before 5.14
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
