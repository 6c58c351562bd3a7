// SPDX-License-Identifier: Apache-2.0

//go:build linux

package segment

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"gompi/internal/host/cgroup"
)

// reserveMargin stays free for other processes, because a check is out of date when the
// memory is taken. The marginShare-th part of the reserved memory stays free, too, for the
// kernel's tables of the pages, in the file and in each process that maps it.
const (
	reserveMargin = 2 << 20
	marginShare   = 64
)

// margin returns how much must be free besides n bytes.
func margin(n int64) int64 { return reserveMargin + n/marginShare }

// NoMemoryError says that shared memory cannot be reserved.
type NoMemoryError struct {
	// Need is the number of bytes that were asked for, with a margin. Found is the number
	// available under Limit, or -1 if the kernel refused and the number is not known.
	Need, Found int64
	Limit       string // the limit that is short: "system", "memory cgroup", "shared memory"
}

func (e *NoMemoryError) Error() string {
	if e.Found < 0 {
		return fmt.Sprintf("not enough memory for shared segment: %s needed, refused by the kernel (%s)", mib(e.Need), e.Limit)
	}
	return fmt.Sprintf("not enough memory for shared segment: %s needed, %s found (%s)", mib(e.Need), mib(e.Found), e.Limit)
}

// Is makes the error match ENOMEM, the lack of memory that a kernel reports.
func (e *NoMemoryError) Is(err error) bool { return err == unix.ENOMEM }

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// Memory reserves shared memory for a process. It checks the free memory before it takes a
// piece. Where there is little, the processes of the host take turns by a lock. It keeps the
// files open that tell the free memory, and reads them at every check. The zero value is
// ready. A Memory must be closed, and is safe for any goroutine.
type Memory struct {
	Small bool // Fill makes no huge pages; immutable after the first use

	hostLock sync.Mutex // held by the goroutine that has the host's lock, or asks for it

	mu     sync.Mutex // guards the fields below
	info   int        // descriptor of /proc/meminfo plus 1; 0 before the first use
	text   [512]byte
	groups cgroup.Memory
}

// checkFree compares the free memory with n bytes, to be taken in steps of step bytes, and
// margin bytes that must stay free; see checkMemory. The first call costs some ten us more
// than the others.
func (m *Memory) checkFree(n, step, margin int64) (tight bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return checkMemory(n, step, margin, m.available(), m.groups.Headroom)
}

// FreeMemory returns how many bytes this process could have now without swapping, by the
// kernel's estimate and by its cgroups. It returns 0 if that is not known, and costs some
// ten us.
func FreeMemory() int64 {
	var m Memory
	defer m.Close()
	return freeMemory(m.available(), m.groups.Headroom)
}

func freeMemory(free int64, headroom func(need int64) (int64, bool)) int64 {
	if free < 0 {
		return 0
	}
	if left, limited := headroom(free); limited {
		free = min(free, left)
	}
	return free
}

// Close closes the files. The next use of m opens them again.
func (m *Memory) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.groups.Close()
	if m.info > 0 {
		unix.Close(m.info - 1)
		m.info = 0
	}
}

// checkMemory compares the need with the free memory of the system (free, negative if
// unknown) and of the cgroup. tight says that not all processes of a full host could take
// their next piece at this moment; a piece is n bytes, at most step.
func checkMemory(n, step, margin, free int64, headroom func(need int64) (int64, bool)) (tight bool, err error) {
	need := n + margin
	plenty := need + maxConcurrent*min(n, step)
	found, limit := int64(math.MaxInt64), ""
	if free >= 0 {
		found, limit = free, "system"
	}
	if left, limited := headroom(plenty); limited && left < found {
		found, limit = left, "memory cgroup"
	}
	if found < need {
		return true, &NoMemoryError{Need: need, Found: found, Limit: limit}
	}
	return found < plenty, nil
}

// available returns the kernel's estimate of memory that is available without swapping, in
// bytes, or -1.
func (m *Memory) available() int64 {
	if !m.open() {
		return -1
	}
	// MemAvailable is in the third line; the buffer cuts off the rest.
	n, _ := unix.Pread(m.info-1, m.text[:], 0)
	return parseAvailable(m.text[:max(n, 0)])
}

// open opens the file that tells the free memory. Package os would add it to Go's poller.
func (m *Memory) open() bool {
	if m.info == 0 {
		fd, err := unix.Open("/proc/meminfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return false
		}
		m.info = fd + 1
	}
	return true
}

func parseAvailable(text []byte) int64 {
	_, rest, ok := bytes.Cut(text, []byte("MemAvailable:"))
	if !ok {
		return -1
	}
	num, _, ok := bytes.Cut(bytes.TrimLeft(rest, " "), []byte(" kB"))
	if !ok {
		return -1
	}
	kib, err := strconv.ParseInt(string(num), 10, 64)
	if err != nil || kib < 0 || kib > 1<<52 {
		return -1
	}
	return kib << 10
}
