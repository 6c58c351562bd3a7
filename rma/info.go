// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"strconv"

	"gompi/internal/engine/remote"
	"gompi/mpi"
)

const (
	// hintNoncontig lets the parts of a shared window lie apart.
	hintNoncontig = "alloc_shared_noncontig"
	// hintAlignment says at which multiples allocated memory begins.
	hintAlignment = "mpi_minimum_memory_alignment"

	maxAlignment = 2 << 20
	// sharedAlignment is the most that memory has wherever it is mapped.
	sharedAlignment = 4096
)

// alignment is what the hint asks for: at least a line, also if it is no power
// of two, or more than most.
func alignment(info *mpi.Info, most int) int {
	n, err := strconv.Atoi(info.Get(hintAlignment))
	if err != nil || n > most || n&(n-1) != 0 {
		return remote.Line
	}
	return max(n, remote.Line)
}

// SetInfo replaces the window's hints by a copy of info, on this process. Of
// those that MPI names alloc_shared_noncontig and mpi_minimum_memory_alignment
// have an effect, when the window is made. The others allow a library to do less than this one needs to do anyway:
//
//   - no_locks: locks are words of a block that each window has;
//   - accumulate_ordering, accumulate_ops: each way to a target keeps the order
//     without waiting, and admits any mixture of operations;
//   - mpi_accumulate_granularity: how much is changed at once is decided by
//     where the memory is;
//   - same_size, same_disp_unit: what others need to know of a rank's memory is
//     more than its size, and travels in one exchange.
//
// They are kept for the program, as those that nobody knows are. Local.
// MPI 4.1 sections 12.2.1 and 12.2.7.
func (w *Window) SetInfo(info *mpi.Info) { w.core.comm.SetInfo(info) }

// Info returns a copy of the window's hints. Local. MPI 4.1 section 12.2.7.
func (w *Window) Info() *mpi.Info { return w.core.comm.Info() }
