// SPDX-License-Identifier: Apache-2.0

//go:build linux

package segment

// unsafe: pages are read one by one where the kernel cannot be asked to map them.

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

// Huge pages are made by hugeStep a call of the kernel, where so much is missing that a call
// pays: hugeLeast. One that has taken hugeSlow, more than small pages would on a machine with
// eight threads that compute for each processor, is the last.
const (
	hugeStep  = 32 << 20
	hugeLeast = 8 << 20
	hugeSlow  = 500 * time.Millisecond

	_ = uint(-(hugeStep % huge.PageBytes))
)

// extent is bytes of a file, from lo on, before hi.
type hole struct{ lo, hi int64 }

// Fill makes sure that [lo, hi) of an arena can be touched, and fills this process's page
// tables for it: whole pages of the file fd, all of which mem maps. Others may have touched
// some, and may do that now, or Fill the same. Only what is not there asks for memory: so
// many bytes, in huge pages where whole ones are missing and the system makes them. The error
// is a *NoMemoryError when memory is short; some pages may have come then.
func (m *Memory) Fill(fd int, mem []byte, lo, hi int64) (taken int64, err error) {
	missing, all := holes(fd, mem, lo, hi), int64(0)
	for _, h := range missing {
		all += h.hi - h.lo
	}
	if all > 0 {
		if _, err := m.checkFree(all, ReserveStep, margin(all)); err != nil {
			return 0, err // before any of it is taken
		}
	}
	for _, h := range append(missing, hole{hi, hi}) {
		if err := populate(mem[lo:h.lo], unix.MADV_POPULATE_READ); err != nil { // a quarter of the time, and may be written as well
			return taken, err
		}
		if err := m.fillHole(fd, mem, h); err != nil {
			return taken, err
		}
		lo, taken = h.hi, taken+h.hi-h.lo
	}
	return taken, nil
}

// holes are where a file that mem maps has no pages between lo and hi. A look at its size
// says whether it has any; where they are is asked of each page, as SEEK_HOLE looks beyond
// hi, and one process at a time.
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

// fillHole is Fill of what is missing.
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
		return populate(mem[lo+done:h.hi], unix.MADV_POPULATE_READ) // what others have filled meanwhile
	}
	return m.fillSmall(mem[h.lo:h.hi])
}

func (m *Memory) fillSmall(mem []byte) error {
	return m.Take(int64(len(mem)), func(k int64) error {
		piece := mem[:k]
		mem = mem[k:]
		return populate(piece, unix.MADV_POPULATE_WRITE)
	})
}

// fillHuge is Fill of whole huge pages that are missing. It tells how many bytes it got
// before the kernel did not go on, which is no error: of the others some may be there. It
// never has a process killed, as small pages can: a huge page that a memory cgroup has not
// is refused.
func (m *Memory) fillHuge(mem []byte) (done int64, err error) {
	err = m.take(int64(len(mem)), hugeStep, func(k int64) error {
		began, piece := time.Now(), mem[done:done+k]
		for i := 0; i < len(piece); i += huge.PageBytes { // the kernel makes none of nothing
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

var errSlow = errors.New("huge pages take long here")

// populate fills page tables for mapped memory.
func populate(mem []byte, how int) error {
	if len(mem) == 0 {
		return nil
	}
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
