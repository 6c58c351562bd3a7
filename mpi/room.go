// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"

	"gompi/internal/base/fault"
	"gompi/internal/host/cgroup"
)

// askRoom is the message from which on it is worth some 200 us to ask whether
// there is memory for it: clearing as much takes several times that.
const askRoom = 16 << 20

// roomFor finds what is wrong with allocating as many bytes as a message is
// said to have. The sender's word alone would end the process: the Go runtime
// does not return from a failed allocation. nil does not promise that the
// memory is there, since others take memory too.
func (c *Comm) roomFor(op fault.Call, st *Status) error {
	if st.Bytes < askRoom {
		return nil
	}
	limit, err := cgroup.MemoryLimit(st.Bytes)
	if err == nil && st.Bytes > limit {
		err = fmt.Errorf("this process can have %d bytes at most; the message is dropped", limit)
	}
	if err == nil {
		return nil
	}
	return c.fail(&argFault{class: ErrNoMemory, op: op, at: atPeerTag(st.Source, st.Tag), got: st.Bytes, want: -1, unit: "bytes", err: err})
}
