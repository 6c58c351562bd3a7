// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"errors"

	"gompi/internal/base/fault"
	"gompi/mpi"
)

const opFence fault.Call = "Window.Fence"

// Fence ends an epoch and offers the next one, in which every rank may access the memory of
// every other. It is a barrier. Collective over the window.
//
// On return all accesses that any rank made before it are complete at their targets, and the
// caller's buffers may be used. The offered epoch begins with the caller's first access; a
// Fence must end it before the caller locks or starts anything. assert may have NoStore,
// NoPut, NoPrecede and NoSucceed.
//
// Errors: ErrRMASync while a lock is held, or an epoch of Start or Post is open. A Fence that
// fails on one rank fails on all, with ErrAborted on those that could have gone on. The window
// stays usable; the accesses of that epoch may or may not have happened.
// MPI 4.1 section 12.5.1.
func (w *Window) Fence(assert Assert) error {
	c, err := w.alive(opFence)
	if err != nil {
		return err
	}
	wrong := c.asserts(opFence, assert, NoStore|NoPut|NoPrecede|NoSucceed)
	if err := c.epochs.collective(w, opFence, wrong); err != nil {
		return err
	}
	_, err = w.meet(opFence, w.settle(opFence, atTarget))
	c.admitted.And(^byFence)
	if assert&NoSucceed == 0 && err == nil {
		c.admitted.Or(offered)
	} else {
		c.admitted.And(^offered)
	}
	c.epochs.over()
	return err
}

// The barrier's ranks form a tree: each tells its parent when all below it have
// entered, and its children when everybody has.

// barrierDegree is how many children a rank has at most. On one host a tree of
// one level is best, as each level waits for its ranks to run.
const barrierDegree = 32

func (c *core) parent() int     { return (c.rank - 1) / barrierDegree }
func (c *core) firstChild() int { return c.rank*barrierDegree + 1 }
func (c *core) children() int {
	return max(0, min(barrierDegree, c.size-c.firstChild()))
}

// meet returns when all ranks have called it. If it fails on one, or that was
// called with an error, it does on all: those it has to do with are told. ends: this
// rank meets the others no more, because its Free has failed, but not as another rank could
// not make its own, or because another one does so. Called by one goroutine at a time.
func (w *Window) meet(op fault.Call, err error) (ends bool, _ error) {
	x := &w.core.epochs
	x.barrier++
	x.heard = 0
	if err == nil {
		err = w.expired(op)
	}
	if err == nil {
		err = w.enter(op, x.barrier)
	}
	if err == nil {
		x.run = 0
		return false, nil
	}
	flags := x.heard & final
	if op == opFree && x.heard == 0 {
		flags = final
	}
	switch {
	case errors.Is(err, mpi.ErrProcFailed):
		flags |= bereft
	case errors.Is(err, mpi.ErrRevoked):
		flags |= revoked
	}
	w.giveUp(op, flags)
	return flags&final != 0, err
}

// refuse tells the others that this rank cannot call what it was to meet them in. It does
// not wait.
func (w *Window) refuse(op fault.Call) {
	w.core.epochs.barrier++
	w.giveUp(op, 0)
}

// giveUp tells the others that the last barrier is given up. A rank that cannot be told
// is gone.
func (w *Window) giveUp(op fault.Call, flags uint64) {
	c, x := w.core, &w.core.epochs
	x.run++
	n := gaveUp(x.barrier, x.run, flags)
	if c.rank > 0 {
		w.signal(op, c.parent(), c.upWord(), n)
	}
	for k := range c.children() {
		w.signal(op, c.firstChild()+k, c.words.down, n)
	}
}

func (w *Window) enter(op fault.Call, n uint64) error {
	c := w.core
	kids := c.children()
	if kids > 0 {
		for k := range kids {
			c.reach(op, c.firstChild()+k) // while they come; the signal below tells what is wrong
		}
		if err := w.await(op, c.firstChild(), c.words.up, kids, n); err != nil {
			return err
		}
	}
	if c.rank > 0 {
		// A parent that has given the window up, or has left the job after it
		// was told of a failure, has said so before.
		up := n
		if run := c.epochs.run; run > 0 { // which the parent may still have to learn
			up = gaveUp(n, run, before)
		}
		err := w.signal(op, c.parent(), c.upWord(), up)
		if err != nil && !errors.Is(err, mpi.ErrClosed) && !errors.Is(err, mpi.ErrLeft) {
			return err
		}
		if err := w.await(op, c.parent(), c.words.down, 1, n); err != nil {
			return err
		}
	}
	for k := range kids {
		if err := w.signal(op, c.firstChild()+k, c.words.down, n); err != nil {
			return err
		}
	}
	return nil
}

// upWord is the caller's word in its parent's block.
func (c *core) upWord() int { return c.words.up + (c.rank-1)%barrierDegree }
