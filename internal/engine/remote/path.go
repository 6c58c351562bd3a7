// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
)

// path is how a target is accessed. What is asked of it has been checked: n
// bytes, more than 0, on both sides. docs/design/014-remote-memory.md.
type path interface {
	put(src buffer.Buf, to Layout, n int64) *fault.Fault
	get(dst buffer.Buf, from Layout, n int64) *fault.Fault
	// change carries out an atomic access.
	change(src, result buffer.Buf, at Layout, o operation, n int64) *fault.Fault
	// swap is CompareAndSwap of one element.
	swap(compare, value, result buffer.Buf, off int64, o operation) *fault.Fault
	// framed reports whether what changes the target goes by frames to its owner:
	// then signals must, too, behind them.
	framed() bool
	// unmarked is the path of those who do not tell the owner when they access the
	// memory: it must be able to end their accesses by itself.
	unmarked() path
}

// The paths. Each is a pointer, so that a target names one without allocating.
type (
	mapped   struct{ *Target } // by load and store
	copied   struct{ *Target } // by the kernel, from and to the owner's memory
	served   struct{ *Target } // by frames to the owner
	readable struct{ served }  // likewise, but what is read is copied
	// posted, by a device, is in posted.go
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
