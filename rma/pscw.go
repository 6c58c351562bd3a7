// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"errors"
	"fmt"

	"gompi/internal/base/fault"
	"gompi/mpi"
)

const (
	opPost     fault.Call = "Window.Post"
	opStart    fault.Call = "Window.Start"
	opComplete fault.Call = "Window.Complete"
	opWait     fault.Call = "Window.Wait"
	opTest     fault.Call = "Window.Test"
)

// Post begins an epoch in which the ranks of group, a part of the window's, may access the
// caller's memory by Start. Local in effect; it does not wait. assert may have NoCheck,
// NoStore and NoPut. Errors: ErrRMASync, ErrRank. MPI 4.1 section 12.5.2.
func (w *Window) Post(group mpi.Group, assert Assert) error {
	c, err := w.usable(opPost)
	if err != nil {
		return err
	}
	if err := c.asserts(opPost, assert, NoCheck|NoStore|NoPut); err != nil {
		return err
	}
	x := &c.epochs
	x.mu.Lock()
	var stranger error
	what := ""
	switch {
	case x.fence != closed:
		what = "Fence or Free is running"
	case x.post != closed:
		what = "the epoch of the last Post is not over"
	default:
		x.counting(c.size)
		if x.posts, stranger = c.ranks(x.posts[:0], group); stranger == nil {
			x.post = changing
		}
	}
	x.mu.Unlock()
	if stranger != nil {
		return fail(c.comm, mpi.ErrRank, opPost, mpi.ProcNull, -1, -1, "", stranger)
	}
	if err := c.misplaced(opPost, mpi.ProcNull, what); err != nil {
		return err
	}
	for _, r := range x.posts {
		x.counts[r].posted++
		err = errors.Join(err, w.signal(opPost, r, c.words.post+c.rank, x.counts[r].posted))
	}
	x.mu.Lock()
	x.post = open
	x.mu.Unlock()
	return err
}

// Start begins an epoch in which the caller may access the memory of the ranks
// of group, a part of the window's, and waits until each has called Post, unless
// assert has NoCheck. If one of them has failed, the epochs of the others for
// the caller end with ErrProcFailed. MPI 4.1 section 12.5.2.
func (w *Window) Start(group mpi.Group, assert Assert) error {
	c, err := w.usable(opStart)
	if err != nil {
		return err
	}
	if err := c.asserts(opStart, assert, NoCheck); err != nil {
		return err
	}
	x := &c.epochs
	x.mu.Lock()
	var stranger error
	what := x.accessAll()
	if what == "" {
		what = c.apart()
	}
	if what == "" {
		x.counting(c.size)
		if x.starts, stranger = c.ranks(x.starts[:0], group); stranger == nil {
			x.start = changing
		}
	}
	x.mu.Unlock()
	if stranger != nil {
		return fail(c.comm, mpi.ErrRank, opStart, mpi.ProcNull, -1, -1, "", stranger)
	}
	if err := c.misplaced(opStart, mpi.ProcNull, what); err != nil {
		return err
	}
	err = w.started(assert)
	if errors.Is(err, mpi.ErrProcFailed) {
		w.forsake()
	}
	x.mu.Lock()
	if x.start = open; err != nil {
		x.start = closed
	}
	x.mu.Unlock()
	return err
}

// started waits for the posts of an epoch and opens it. If it is given up the
// posts are there for another Start.
func (w *Window) started(assert Assert) error {
	c, x := w.core, &w.core.epochs
	for _, r := range x.starts {
		if _, err := c.reach(opStart, r); err != nil {
			return err
		}
		if assert&NoCheck != 0 {
			continue
		}
		if err := w.awaitRank(opStart, x.starts, r, c.words.post+r, x.counts[r].started+1); err != nil {
			return err
		}
	}
	for _, r := range x.starts {
		x.counts[r].started++
		c.targets[r].Load().open.Or(byStart)
	}
	return nil
}

// forsake ends an epoch that could not begin because a rank of it has failed.
// The others would wait for Complete.
func (w *Window) forsake() {
	c, x := w.core, &w.core.epochs
	for _, r := range x.starts {
		x.counts[r].started++
		x.counts[r].completed++
		// A rank that cannot be told is gone.
		_ = w.signal(opStart, r, c.words.complete+c.rank, gaveUp(x.counts[r].completed, 1, bereft))
	}
}

// Complete ends the epoch of Start. On return the caller's accesses are complete at their
// targets, and its buffers may be used. MPI 4.1 section 12.5.2.
func (w *Window) Complete() error {
	c, err := w.usable(opComplete)
	if err != nil {
		return err
	}
	x := &c.epochs
	if err := c.advance(opComplete, &x.start, "Start"); err != nil {
		return err
	}
	for _, r := range x.starts {
		t := c.targets[r].Load()
		t.open.And(^byStart)
		x.counts[r].completed++
		err = errors.Join(err, w.flushed(opComplete, t, atTarget), w.signal(opComplete, r, c.words.complete+c.rank, x.counts[r].completed))
	}
	x.mu.Lock()
	x.start = closed
	x.mu.Unlock()
	return err
}

// Wait ends the epoch of Post. It returns when each rank of the epoch has called Complete.
// Errors: ErrProcFailed if a rank has failed, or its Start has failed because of another
// rank's failure; ErrCancelled when the window's context ends, which leaves the epoch open.
// MPI 4.1 section 12.5.2.
func (w *Window) Wait() error {
	c, err := w.usable(opWait)
	if err != nil {
		return err
	}
	x := &c.epochs
	if err := c.advance(opWait, &x.post, "Post"); err != nil {
		return err
	}
	for _, r := range x.posts {
		if err = w.awaitRank(opWait, x.posts, r, c.words.complete+r, x.counts[r].awaited+1); err != nil {
			break
		}
	}
	c.exposed(!errors.Is(err, mpi.ErrCancelled))
	return err
}

// Test is Wait without blocking: done is false, without an error, while the epoch goes on.
// MPI 4.1 section 12.5.2.
func (w *Window) Test() (done bool, err error) {
	c, err := w.usable(opTest)
	if err != nil {
		return false, err
	}
	x := &c.epochs
	if err := c.advance(opTest, &x.post, "Post"); err != nil {
		return false, err
	}
	done = true
	for _, r := range x.posts {
		done, err = w.glanceRank(opTest, x.posts, r, c.words.complete+r, x.counts[r].awaited+1)
		if !done || err != nil {
			break
		}
	}
	c.exposed(done && !errors.Is(err, mpi.ErrCancelled))
	return done, err
}

// exposed ends the epoch of Post, or leaves it open.
func (c *core) exposed(over bool) {
	x := &c.epochs
	x.mu.Lock()
	defer x.mu.Unlock()
	if !over {
		x.post = open
		return
	}
	for _, r := range x.posts {
		x.counts[r].awaited++
	}
	x.post = closed
}

// advance makes an open epoch one that is being ended.
func (c *core) advance(op fault.Call, s *stage, begin string) error {
	c.epochs.mu.Lock()
	was := *s
	if was == open {
		*s = changing
	}
	c.epochs.mu.Unlock()
	switch was {
	case open:
		return nil
	case changing:
		return c.misplaced(op, mpi.ProcNull, "another goroutine begins or ends the epoch")
	}
	return c.misplaced(op, mpi.ProcNull, "no epoch of "+begin+" is open")
}

// ranks appends the ranks that the processes of a group have in the window; the
// error is not a call's yet.
func (c *core) ranks(list []int, g mpi.Group) ([]int, error) {
	for _, p := range g.Core().All() {
		r := c.ctx.Members.Index(p)
		if r < 0 {
			return list, fmt.Errorf("process %v of the group is not in the window", p)
		}
		list = append(list, r)
	}
	return list, nil
}

// counting makes room for the counts of epochs with each rank.
func (x *epochs) counting(size int) {
	if x.counts == nil {
		x.counts = make([]pair, size)
	}
}
