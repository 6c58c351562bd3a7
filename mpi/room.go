// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"gompi/internal/cgroup"
	"gompi/internal/engine"
)

// askRoom is the message from which on it is worth some 200 us to ask whether
// there is memory for it: clearing as much takes several times that.
const askRoom = 16 << 20

// roomFor finds what is wrong with allocating as many bytes as a message is
// said to have. The sender's word alone would end the process: the Go runtime
// does not return from a failed allocation. nil does not promise that the
// memory is there, since others take memory too.
func (c *Comm) roomFor(op engine.Op, st *Status) error {
	if st.Bytes < askRoom {
		return nil
	}
	limit, err := mostMemory(st.Bytes)
	if err == nil && st.Bytes > limit {
		err = fmt.Errorf("this process can have %d bytes at most; the message is dropped", limit)
	}
	if err == nil {
		return nil
	}
	return c.argError(ErrNoMemory, op, st.Source, st.Tag, st.Bytes, -1, "bytes", err)
}

// mostMemory is what n bytes are to be compared with: more than that this
// process cannot have, whatever the collector frees and the kernel swaps out.
func mostMemory(n int64) (int64, error) {
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
	var groups cgroup.Memory
	defer groups.Close()
	if left, limited := groups.Headroom(max(0, n-own)); limited {
		limit = min(limit, own+left)
	}
	return limit, nil
}
