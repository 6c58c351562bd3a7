// SPDX-License-Identifier: Apache-2.0

// Package cgroup says how many CPUs and how much memory this process may use. UsableCPUs
// counts CPUs by the affinity mask and the quotas. Memory and MemoryLimit read the limits
// of every control group above the process, of version 1 and version 2.
package cgroup

import (
	"io/fs"
)

// UsableCPUs returns the number of CPUs that this process can keep busy. That is the
// number in the affinity mask of the calling thread, or less if a cgroup has a CPU quota.
// A fraction is rounded down, because the kernel throttles a process with one thread too
// many. The result is at least 1. The call reads a few small files, so call it rarely.
func UsableCPUs() int {
	n := affinity()
	return max(1, min(n, cpuQuota(system(), n)))
}

// cpuQuota returns the least quota of the groups of this process, or none if there is no
// quota.
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
