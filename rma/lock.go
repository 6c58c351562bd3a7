// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"cmp"
	"errors"
	"fmt"

	"gompi/internal/base/fault"
	"gompi/mpi"
)

const (
	opLock      fault.Call = "Window.Lock"
	opUnlock    fault.Call = "Window.Unlock"
	opLockAll   fault.Call = "Window.LockAll"
	opUnlockAll fault.Call = "Window.UnlockAll"
)

// LockKind says whether other ranks may hold the lock as well.
type LockKind uint8

// The kinds of locks. MPI 4.1 section 12.5.3.
const (
	LockShared LockKind = iota + 1
	LockExclusive
)

// Lock begins an epoch in which the caller may access the memory of rank. Not collective. It
// waits until it has the lock. Ranks get a lock in the order of their requests; shared
// locks that follow each other are held together. assert may have NoCheck: then no lock is
// taken.
//
// Errors: ErrProcFailed if a rank has died that held the lock; the lock of a rank that had
// died before passes on. ErrRMASync in another epoch; ErrRank, ErrLockType.
// MPI 4.1 section 12.5.3.
func (w *Window) Lock(kind LockKind, rank int, assert Assert) error {
	c, err := w.usable(opLock)
	if err != nil {
		return err
	}
	if err := c.asserts(opLock, assert, NoCheck); err != nil {
		return err
	}
	if kind != LockShared && kind != LockExclusive {
		return fail(c.comm, mpi.ErrLockType, opLock, rank, -1, -1, "", fmt.Errorf("kind %d", kind))
	}
	if rank == mpi.ProcNull {
		return nil
	}
	t, err := c.reach(opLock, rank)
	if err != nil {
		return err
	}
	x := &c.epochs
	x.mu.Lock()
	if x.locks == nil {
		x.locks = make([]stage, c.size)
	}
	what := x.access()
	if what == "" && x.locks[rank] != closed {
		what = "the lock is held"
	}
	if what == "" {
		what = c.apart()
	}
	if what == "" {
		x.locks[rank] = changing
		x.locked++
	}
	x.mu.Unlock()
	if err := c.misplaced(opLock, rank, what); err != nil {
		return err
	}
	now := unchecked
	if assert&NoCheck == 0 {
		now = open
		err = w.take(opLock, t, kind == LockExclusive)
	}
	if err == nil {
		t.open.Or(byLock)
	} else {
		now = closed
	}
	x.setLock(rank, now)
	return err
}

// Unlock ends the epoch of Lock. Not collective. On return the caller's accesses are
// complete at rank, and its buffers may be used.
// MPI 4.1 section 12.5.3.
func (w *Window) Unlock(rank int) error {
	c, err := w.usable(opUnlock)
	if err != nil {
		return err
	}
	if rank == mpi.ProcNull {
		return nil
	}
	if err := c.checkRank(opUnlock, rank); err != nil {
		return err
	}
	x := &c.epochs
	x.mu.Lock()
	was := closed
	if x.locks != nil {
		was = x.locks[rank]
	}
	if was == open || was == unchecked {
		x.locks[rank] = changing
	}
	x.mu.Unlock()
	switch was {
	case closed:
		return c.misplaced(opUnlock, rank, "its lock is not held")
	case changing:
		return c.misplaced(opUnlock, rank, "another goroutine takes or gives up the lock")
	}
	t := c.targets[rank].Load()
	t.open.And(^byLock)
	err = w.flushed(opUnlock, t, atTarget)
	if was == open {
		err = cmp.Or(err, w.give(opUnlock, t))
	}
	x.setLock(rank, closed)
	return err
}

func (x *epochs) setLock(rank int, s stage) {
	x.mu.Lock()
	if x.locks[rank] = s; s == closed {
		x.locked--
	}
	x.mu.Unlock()
}

// LockAll begins an epoch in which the caller may access the memory of all
// ranks, with a shared lock of each; assert may have NoCheck: then no lock is
// taken. Other ranks' locks are taken when the caller first accesses their
// memory, which waits then, or at once in a window of AllocateShared, or of which
// SharedQuery was called: accesses need no call there. Not collective. MPI 4.1 section 12.5.3.
func (w *Window) LockAll(assert Assert) error {
	c, err := w.usable(opLockAll)
	if err != nil {
		return err
	}
	if err := c.asserts(opLockAll, assert, NoCheck); err != nil {
		return err
	}
	x := &c.epochs
	x.mu.Lock()
	what := x.accessAll()
	if what == "" {
		what = c.apart()
	}
	if what == "" {
		x.all = changing
	}
	x.mu.Unlock()
	if err := c.misplaced(opLockAll, mpi.ProcNull, what); err != nil {
		return err
	}
	now := unchecked
	if assert&NoCheck == 0 {
		now = open
		err = w.lockNow()
	}
	switch {
	case err != nil:
		now = closed
		err = errors.Join(err, w.unlockTaken(opLockAll))
	case now == unchecked:
		c.admitted.Or(byLockAll)
	}
	x.mu.Lock()
	x.all = now
	x.mu.Unlock()
	return err
}

// lockNow takes what LockAll cannot leave to the first access: a rank uses its
// own memory without a call, and that of others which it has asked for.
func (w *Window) lockNow() error {
	c := w.core
	for r := range c.size {
		if r != c.rank && c.flavor != FlavorShared && !c.queried.Load() {
			continue
		}
		t, err := c.reach(opLockAll, r)
		if err == nil {
			err = w.lockFirst(opLockAll, t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lockFirst takes the shared lock of LockAll unless that has been done.
func (w *Window) lockFirst(op fault.Call, t *target) error {
	for n := 0; !t.first.TryLock(); n++ { // another goroutine waits for it
		if err := w.pause(op, n); err != nil {
			return err
		}
	}
	defer t.first.Unlock()
	if t.open.Load()&byLockAll != 0 {
		return nil
	}
	if err := w.take(op, t, false); err != nil {
		return err
	}
	x := &w.core.epochs
	x.mu.Lock()
	x.taken = append(x.taken, t)
	x.mu.Unlock()
	t.open.Or(byLockAll)
	return nil
}

// UnlockAll ends the epoch of LockAll: the caller's accesses have happened at
// their targets. MPI 4.1 section 12.5.3.
func (w *Window) UnlockAll() error {
	c, err := w.usable(opUnlockAll)
	if err != nil {
		return err
	}
	x := &c.epochs
	x.mu.Lock()
	was := x.all
	if was == open || was == unchecked {
		x.all = changing
	}
	x.mu.Unlock()
	switch was {
	case closed:
		return c.misplaced(opUnlockAll, mpi.ProcNull, "LockAll is not in force")
	case changing:
		return c.misplaced(opUnlockAll, mpi.ProcNull, "another goroutine begins or ends the epoch")
	}
	c.admitted.And(^byLockAll)
	c.order()
	err = w.settle(opUnlockAll, atTarget)
	err = errors.Join(err, w.unlockTaken(opUnlockAll))
	x.mu.Lock()
	x.all = closed
	x.mu.Unlock()
	return err
}

// unlockTaken gives up the locks that LockAll has taken.
func (w *Window) unlockTaken(op fault.Call) error {
	var first error
	x := &w.core.epochs
	for i, t := range x.taken {
		t.open.And(^byLockAll)
		if err := w.give(op, t); err != nil {
			first = errors.Join(first, err)
		}
		x.taken[i] = nil
	}
	x.taken = x.taken[:0]
	return first
}

// take waits for a target's lock.
func (w *Window) take(op fault.Call, t *target, exclusive bool) error {
	c := w.core
	p := w.wait(op, t.rank)
	f := t.Lock(c.words.lock, c.size, c.rank, exclusive, &p.Await)
	w.done(p)
	return c.fault(op, t.rank, f)
}

// give gives a target's lock up.
func (w *Window) give(op fault.Call, t *target) error {
	c := w.core
	return c.fault(op, t.rank, t.Unlock(c.words.lock, c.size, c.rank))
}
