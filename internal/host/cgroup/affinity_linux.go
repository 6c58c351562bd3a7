// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// affinity returns the number of CPUs that the calling thread may run on.
func affinity() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) == nil {
		return set.Count()
	}
	return runtime.NumCPU()
}
