// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// MemoryLimit returns a bound on the memory that this process can have, whatever the
// garbage collector frees and the kernel swaps out. The bound is good enough to decide
// whether the process can have n bytes.
func MemoryLimit(n int64) (int64, error) {
	var sys unix.Sysinfo_t
	if err := unix.Sysinfo(&sys); err != nil {
		return 0, fmt.Errorf("size of memory: %w", err)
	}
	unit := int64(sys.Unit)
	limit := (int64(sys.Totalram) + int64(sys.Totalswap)) * unit
	if n > limit {
		return limit, nil
	}
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	own := int64(heap.HeapSys-heap.HeapReleased) + int64(sys.Freeswap)*unit
	var groups Memory
	defer groups.Close()
	if left, limited := groups.Headroom(max(0, n-own)); limited {
		limit = min(limit, own+left)
	}
	return limit, nil
}
