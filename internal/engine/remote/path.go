// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
)

// path is a way to access a target. Its methods get checked arguments: n bytes on both
// sides, n above 0. docs/design/014-remote-memory.md.
type path interface {
	put(src buffer.Buf, to Layout, n int64) *fault.Fault
	get(dst buffer.Buf, from Layout, n int64) *fault.Fault
	// change does an atomic access.
	change(src, result buffer.Buf, at Layout, o operation, n int64) *fault.Fault
	// swap does a CompareAndSwap of one element.
	swap(compare, value, result buffer.Buf, off int64, o operation) *fault.Fault
	// framed reports whether changes travel to the owner by frames. Then signals must
	// follow them by frames too.
	framed() bool
	// unmarked returns the path of a process that sets no mark when it accesses the memory:
	// the owner must be able to end its accesses by itself.
	unmarked() path
}

// The paths. Each is a pointer, so that a target names one without allocating.
type (
	mapped   struct{ *Target } // by load and store
	copied   struct{ *Target } // by the kernel, from and to the owner's memory
	served   struct{ *Target } // by frames to the owner
	readable struct{ served }  // by frames, but reads are copied by the kernel
	// posted, by a device, is in device_path.go
)

func (mapped) framed() bool { return false }
func (copied) framed() bool { return false }
func (served) framed() bool { return true }

func (t mapped) unmarked() path { return served(t) }
func (t copied) unmarked() path { return served(t) }
func (t served) unmarked() path { return t }

func (t readable) get(dst buffer.Buf, from Layout, n int64) *fault.Fault {
	return copied{t.Target}.get(dst, from, n)
}
