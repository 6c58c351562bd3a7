// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"context"

	"gompi/internal/base/fault"
	"gompi/internal/engine/remote"
	"gompi/mpi"
)

const (
	opFlush         fault.Call = "Window.Flush"
	opFlushAll      fault.Call = "Window.FlushAll"
	opFlushLocal    fault.Call = "Window.FlushLocal"
	opFlushLocalAll fault.Call = "Window.FlushLocalAll"
	opSync          fault.Call = "Window.Sync"
)

// Flush completes the caller's accesses to a rank, under a lock: they have
// happened there, and what was read is in its buffers. An access that fails only
// on its way, and has no request that tells of it, is the error of the next call
// that completes it. MPI 4.1 section 12.5.4.
func (w *Window) Flush(rank int) error {
	if t := w.flushNow(rank); t != nil {
		w.core.order()
		return nil
	}
	return w.flush(opFlush, rank, atTarget)
}

// FlushLocal completes the caller's accesses to a rank as far as its own buffers
// are concerned: they may be used again, and what was read is there. Nothing is
// known of what was written. MPI 4.1 section 12.5.4.
func (w *Window) FlushLocal(rank int) error {
	if w.flushNow(rank) != nil {
		return nil
	}
	return w.flush(opFlushLocal, rank, atOrigin)
}

// completion is how far a call completes accesses.
type completion uint8

const (
	atOrigin completion = iota // the caller's buffers are its own again
	atTarget                   // it has happened there, too
)

func (w *Window) flush(op fault.Call, rank int, how completion) error {
	c, err := w.usable(op)
	if err != nil {
		return err
	}
	if rank == mpi.ProcNull {
		return nil
	}
	if err := c.checkRank(op, rank); err != nil {
		return err
	}
	t := c.targets[rank].Load()
	if t == nil || (t.open.Load()|c.admitted.Load())&passive == 0 {
		if c.lockedAll() {
			return nil // nothing was accessed
		}
		return c.misplaced(op, rank, "its lock is not held")
	}
	return w.flushed(op, t, how)
}

// flushNow is the target of a flush that has nothing to wait for, nil if it may
// have.
func (w *Window) flushNow(rank int) *target {
	if w == nil || w.user != nil || uint(rank) >= uint(len(w.core.targets)) {
		return nil
	}
	c := w.core
	t := c.targets[rank].Load()
	if t == nil || t.mem == nil || (t.open.Load()|c.admitted.Load())&passive == 0 {
		return nil
	}
	return t
}

// order keeps the processor from reading what comes after before what was
// written is seen by others.
func (c *core) order() { c.fence.Add(1) }

// FlushAll is Flush for all ranks. MPI 4.1 section 12.5.4.
func (w *Window) FlushAll() error { return w.flushAll(opFlushAll, atTarget) }

// FlushLocalAll is FlushLocal for all ranks. MPI 4.1 section 12.5.4.
func (w *Window) FlushLocalAll() error { return w.flushAll(opFlushLocalAll, atOrigin) }

func (w *Window) flushAll(op fault.Call, how completion) error {
	c, err := w.usable(op)
	if err != nil {
		return err
	}
	x := &c.epochs
	x.mu.Lock()
	ok := x.locked > 0 || x.all != closed
	x.mu.Unlock()
	if !ok {
		return c.misplaced(op, mpi.ProcNull, "no lock is held")
	}
	if how == atTarget {
		c.order()
	}
	return w.settle(op, how)
}

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
func (w *Window) flushed(op fault.Call, t *target, how completion) error {
	if how == atTarget {
		w.core.order()
	}
	if w.core.flavor == FlavorDynamic {
		return w.flushPieces(op, t, how)
	}
	if t.mem != nil || !how.pending(t.Target) {
		return nil
	}
	return w.core.fault(op, t.rank, how.flush(t.Target, w.user))
}

func (how completion) pending(t *remote.Target) bool {
	if how == atOrigin {
		return t.PendingLocal()
	}
	return t.Pending()
}

func (how completion) flush(t *remote.Target, user context.Context) *fault.Fault {
	if how == atOrigin {
		return t.FlushLocal(user)
	}
	return t.Flush(user)
}

// settle completes all accesses.
func (w *Window) settle(op fault.Call, how completion) error {
	var first error
	for _, t := range w.core.far() {
		if err := w.flushed(op, t, how); err != nil && first == nil {
			first = err
		}
	}
	return first
}
