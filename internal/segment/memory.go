// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"

	"gompi/internal/cgroup"
)

// reserveMargin stays free for everybody else: what a check finds is out of
// date when the memory is taken.
const reserveMargin = 2 << 20

// NoMemoryError tells that shared memory cannot be reserved.
type NoMemoryError struct {
	// Need and Found are bytes: asked for (with a margin of 2 MiB), and
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

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// Memory tells, as often as asked, whether memory can be reserved. It keeps
// the files open that say so, and reads them at every call. The zero value is
// ready, and must be closed. Safe for any goroutine.
type Memory struct {
	mu     sync.Mutex // guards the rest
	info   *os.File   // /proc/meminfo, nil until the first use
	text   [512]byte
	groups cgroup.Memory
}

// Check tells, as a *NoMemoryError, if n bytes cannot be reserved now. The
// first call costs some hundred us, the others 20.
func (m *Memory) Check(n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return checkMemory(n, m.available(), m.groups.Headroom)
}

// Close closes the files. m may be used again; that opens them.
func (m *Memory) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.groups.Close()
	if m.info != nil {
		m.info.Close()
		m.info = nil
	}
}

// CheckMemory is Memory.Check for one question.
func CheckMemory(n int64) error {
	var m Memory
	defer m.Close()
	return m.Check(n)
}

// checkMemory compares need with what the system (free, negative if unknown)
// and the cgroup have.
func checkMemory(n, free int64, headroom func(need int64) (int64, bool)) error {
	need := n + reserveMargin
	if free >= 0 && free < need {
		return &NoMemoryError{Need: need, Found: free, Limit: "system"}
	}
	if left, limited := headroom(need); limited && left < need {
		return &NoMemoryError{Need: need, Found: left, Limit: "memory cgroup"}
	}
	return nil
}

// available is the kernel's own estimate of memory that can be had without
// swapping, in bytes, or -1.
func (m *Memory) available() int64 {
	if m.info == nil {
		f, err := os.Open("/proc/meminfo")
		if err != nil {
			return -1
		}
		m.info = f
	}
	// MemAvailable stands in the third line; the rest is cut off.
	n, _ := m.info.ReadAt(m.text[:], 0)
	return parseAvailable(m.text[:n])
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
