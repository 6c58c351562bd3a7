// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"gompi/internal/calls"
	"gompi/mpi"
)

const (
	opFlush    calls.Name = "Window.Flush"
	opFlushAll calls.Name = "Window.FlushAll"
	opSync     calls.Name = "Window.Sync"
)

// Flush completes the caller's accesses to a rank, under a lock: they have
// happened there, and what was read is in its buffers. MPI 4.1 section 12.5.4.
func (w *Window) Flush(rank int) error {
	if w.flushNow(rank) {
		return nil
	}
	c, err := w.usable(opFlush)
	if err != nil {
		return err
	}
	if rank == mpi.ProcNull {
		return nil
	}
	if err := c.checkRank(opFlush, rank); err != nil {
		return err
	}
	t := c.targets[rank].Load()
	if t == nil || (t.open.Load()|c.admitted.Load())&passive == 0 {
		if c.lockedAll() {
			return nil // nothing was accessed
		}
		return c.misplaced(opFlush, rank, "its lock is not held")
	}
	return w.flushed(opFlush, t)
}

// flushNow does a Flush that has nothing to wait for.
func (w *Window) flushNow(rank int) bool {
	if w == nil || w.user != nil || uint(rank) >= uint(len(w.core.targets)) {
		return false
	}
	c := w.core
	t := c.targets[rank].Load()
	if t == nil || t.mem == nil || (t.open.Load()|c.admitted.Load())&passive == 0 {
		return false
	}
	c.order()
	return true
}

// order keeps the processor from reading what comes after before what was
// written is seen by others.
func (c *core) order() { c.fence.Add(1) }

// FlushLocal completes the caller's accesses to a rank as far as its own
// buffers are concerned. MPI 4.1 section 12.5.4.
func (w *Window) FlushLocal(rank int) error { return w.Flush(rank) }

// FlushAll is Flush for all ranks. MPI 4.1 section 12.5.4.
func (w *Window) FlushAll() error {
	c, err := w.usable(opFlushAll)
	if err != nil {
		return err
	}
	x := &c.epochs
	x.mu.Lock()
	ok := x.locked > 0 || x.all != closed
	x.mu.Unlock()
	if !ok {
		return c.misplaced(opFlushAll, mpi.ProcNull, "no lock is held")
	}
	c.order()
	return w.settle(opFlushAll)
}

// FlushLocalAll is FlushLocal for all ranks. MPI 4.1 section 12.5.4.
func (w *Window) FlushLocalAll() error { return w.FlushAll() }

// Sync orders the caller's own loads and stores in windows: those before it
// come first for everybody. Local. MPI 4.1 section 12.5.4.
func (w *Window) Sync() error {
	c, err := w.usable(opSync)
	if err != nil {
		return err
	}
	c.order()
	return nil
}

// lockedAll reports whether LockAll is in force.
func (c *core) lockedAll() bool {
	c.epochs.mu.Lock()
	defer c.epochs.mu.Unlock()
	return c.epochs.all == open || c.epochs.all == unchecked
}

// flushed completes all accesses to a target.
func (w *Window) flushed(op calls.Name, t *target) error {
	w.core.order()
	if w.core.flavor == FlavorDynamic {
		return w.flushPieces(op, t)
	}
	if t.mem != nil || !t.Pending() {
		return nil
	}
	return w.core.fault(op, t.rank, t.Flush(w.user))
}

// settle completes all accesses at their targets.
func (w *Window) settle(op calls.Name) error {
	var first error
	for _, t := range w.core.far() {
		if err := w.flushed(op, t); err != nil && first == nil {
			first = err
		}
	}
	return first
}
