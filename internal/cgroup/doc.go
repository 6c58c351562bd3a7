// SPDX-License-Identifier: Apache-2.0

// Package cgroup says how many CPUs and how much memory this process may use:
// its affinity and the limits of every control group above it, version 1 and
// version 2.
package cgroup

import (
	"io/fs"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// UsableCPUs returns how many CPUs this process can keep busy: the CPUs in the
// affinity mask of the calling thread, or fewer where a cgroup has a CPU
// quota. A fraction is rounded down, because one thread too many is what the
// kernel throttles. The answer is at least 1. It reads a few small files; call
// it rarely.
func UsableCPUs() int {
	n := runtime.NumCPU()
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) == nil {
		n = set.Count()
	}
	return max(1, min(n, cpuQuota(os.DirFS("/"), n)))
}

// MemoryHeadroom returns how many bytes can still be charged to the cgroups of
// this process before one of them is full: for each, limit minus use plus file
// cache that the kernel can drop. limited is false when no cgroup has a limit
// (or none can be read); bytes is then meaningless. The answer is never
// negative and is out of date when it arrives: it tells "cannot be" from
// "should work", no more.
func MemoryHeadroom() (bytes int64, limited bool) {
	return memoryHeadroom(os.DirFS("/"))
}

func cpuQuota(root fs.FS, none int) int {
	n := none
	for _, d := range find(root, "cpu") {
		if q, ok := d.cpus(root); ok {
			n = min(n, q)
		}
	}
	return n
}

func memoryHeadroom(root fs.FS) (bytes int64, limited bool) {
	for _, d := range find(root, "memory") {
		b, ok := d.headroom(root)
		if ok && (!limited || b < bytes) {
			bytes, limited = b, true
		}
	}
	return max(bytes, 0), limited
}
