// SPDX-License-Identifier: Apache-2.0

// Package cgroup says how many CPUs and how much memory this process may use:
// its affinity and the limits of every control group above it, version 1 and
// version 2.
package cgroup

import (
	"io/fs"
)

// UsableCPUs returns how many CPUs this process can keep busy: the CPUs in the
// affinity mask of the calling thread, or fewer where a cgroup has a CPU
// quota. A fraction is rounded down, because one thread too many is what the
// kernel throttles. The answer is at least 1. It reads a few small files; call
// it rarely.
func UsableCPUs() int {
	n := affinity()
	return max(1, min(n, cpuQuota(system(), n)))
}

func cpuQuota(root fs.FS, none int) int {
	own, err := fs.ReadFile(root, ownFile)
	if err != nil {
		return none
	}
	dirs, err := find(root, string(own), "cpu")
	if err != nil {
		return none
	}
	n := none
	for _, d := range dirs {
		if q, ok := d.cpus(root); ok {
			n = min(n, q)
		}
	}
	return n
}
