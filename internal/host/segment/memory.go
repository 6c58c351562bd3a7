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

// reserveMargin stays free for everybody else: what a check finds is out of
// date when the memory is taken. marginShare of what is reserved stays free
// too: the kernel's own lists of the pages, in the file and in each process that
// maps it.
const (
	reserveMargin = 2 << 20
	marginShare   = 64
)

// margin is what has to be free besides n bytes.
func margin(n int64) int64 { return reserveMargin + n/marginShare }

// NoMemoryError tells that shared memory cannot be reserved.
type NoMemoryError struct {
	// Need and Found are bytes: asked for (with a margin), and
	// available under Limit; Found is -1 if the kernel refused and nobody
	// knows how much there was.
	Need, Found int64
	Limit       string // what is short: "system", "memory cgroup", "shared memory"
}

func (e *NoMemoryError) Error() string {
	if e.Found < 0 {
		return fmt.Sprintf("not enough memory for shared segment: %s needed, refused by the kernel (%s)", mib(e.Need), e.Limit)
	}
	return fmt.Sprintf("not enough memory for shared segment: %s needed, %s found (%s)", mib(e.Need), mib(e.Found), e.Limit)
}

// Is makes it the lack of memory that a kernel would report.
func (e *NoMemoryError) Is(err error) bool { return err == unix.ENOMEM }

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// Memory is how a process reserves shared memory: no piece is taken without a
// look at what there is, and where there is little the processes of the host
// take turns. It keeps the files open that say how much there is, and reads them
// at every look. The zero value is ready, and must be closed. Safe for any
// goroutine.
type Memory struct {
	Small bool // Fill makes no huge pages; immutable after the first use

	hostLock sync.Mutex // of the goroutine that has the host's turn, or asks for it

	mu     sync.Mutex // guards the rest
	info   int        // descriptor of /proc/meminfo, + 1; 0 until the first use
	text   [512]byte
	groups cgroup.Memory
}

// look compares what there is with n bytes, to be taken by step at a time, and what is
// to stay free; see checkMemory. The first one costs some ten us more than the others.
func (m *Memory) checkFree(n, step, margin int64) (tight bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return checkMemory(n, step, margin, m.available(), m.groups.Headroom)
}

// FreeMemory is how many bytes this process could have now without swapping, by
// the kernel's estimate and by its cgroups; 0 if nobody knows. It costs some
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

// Close closes the files. m may be used again; that opens them.
func (m *Memory) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.groups.Close()
	if m.info > 0 {
		unix.Close(m.info - 1)
		m.info = 0
	}
}

// checkMemory compares need with what the system (free, negative if unknown)
// and the cgroup have. tight: as many processes as a host may have could not all
// take their next piece of n bytes, at most step, at this moment.
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

// available is the kernel's own estimate of memory that can be had without
// swapping, in bytes, or -1.
func (m *Memory) available() int64 {
	if !m.open() {
		return -1
	}
	// MemAvailable stands in the third line; the rest is cut off.
	n, _ := unix.Pread(m.info-1, m.text[:], 0)
	return parseAvailable(m.text[:max(n, 0)])
}

// open opens the file that tells how much memory there is. In package os it would
// go into Go's poller.
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
