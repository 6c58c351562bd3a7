// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"fmt"
	"sync"

	"gompi/internal/base/fault"
	"gompi/mpi"
)

// Assert is what the caller of a synchronisation promises, so that it may do
// less: a sum of the constants. An assertion that a call does not have is
// ErrAssert. MPI 4.1 section 12.5.5.
type Assert uint8

// The assertions.
const (
	// NoCheck: Start's posts have been made, and Post's Starts will come after
	// it; no other rank holds a conflicting lock.
	NoCheck Assert = 1 << iota
	// NoStore: the caller has not stored in its memory since the last
	// synchronisation.
	NoStore
	// NoPut: no rank will write to the caller's memory in the epoch.
	NoPut
	// NoPrecede: the Fence ends no epoch in which accesses were made. All
	// ranks say so, or none.
	NoPrecede
	// NoSucceed: the Fence begins no epoch. All ranks say so, or none.
	NoSucceed
)

func (c *core) asserts(op fault.Call, a, may Assert) error {
	if a&^may != 0 {
		return fail(c.comm, mpi.ErrAssert, op, mpi.ProcNull, -1, -1, "", fmt.Errorf("assertions %#b, of which the call has %#b", a, may))
	}
	return nil
}

// The kinds of epochs that admit accesses, in core.admitted to all targets and
// in target.open to one.
const (
	byFence uint64 = 1 << iota
	byStart
	byLock
	byLockAll
	offered // in core.admitted: the epoch of Fence is there for the first access
	ending  // in target.open: Free is called, which ends all

	passive  = byLock | byLockAll
	anyEpoch = byFence | byStart | passive
)

// stage is how far an epoch has come. A call that waits leaves it changing, so
// that no other call can do the same.
type stage uint8

const (
	closed stage = iota
	changing
	open
	unchecked // a lock that was not taken, by NoCheck
)

// epochs are those of one window. The lock is not held while a call waits.
type epochs struct {
	mu     sync.Mutex
	fence  stage // changing while Fence runs, and from Free on
	all    stage // LockAll
	start  stage
	post   stage
	locks  []stage // by rank, once there was a Lock
	locked int     // how many of them are not closed

	taken  []*target // that LockAll has locked
	starts []int     // ranks of the epoch of Start
	posts  []int     // ranks of the epoch of Post
	counts []pair    // by rank, once there was a Start or Post
	// Of the caller of Fence or Free: how many barriers it has entered, how many of the last it
	// has given up in a row, and the word by which another rank has given up the last one.
	barrier, run, heard uint64
}

// pair counts the epochs with one other rank.
type pair struct {
	posted, awaited    uint64 // exposures to it: begun, ended
	started, completed uint64 // accesses to it: begun, ended
}

// collective begins a Fence or Free, or says why it cannot be called; wrong is what else is
// wrong with it. The others are told, unless another goroutine is in such a call: theirs meets
// that.
func (x *epochs) collective(w *Window, op fault.Call, wrong error) error {
	x.mu.Lock()
	running, what := x.fence != closed, x.accessAll()
	if what == "" && x.post != closed {
		what = "the epoch of Post is not over"
	}
	if !running {
		x.fence = changing
	}
	x.mu.Unlock()
	if wrong == nil {
		wrong = w.core.misplaced(op, mpi.ProcNull, what)
	}
	if wrong != nil && !running {
		w.refuse(op)
		x.over()
	}
	return wrong
}

// over ends a Fence, or a Free after which the window is still there.
func (x *epochs) over() {
	x.mu.Lock()
	x.fence = closed
	x.mu.Unlock()
}

// apart ends the epoch that the last Fence offers, or says that it was begun:
// those of the other calls are disjoint from it. The lock is held.
func (c *core) apart() string {
	if c.admitted.Load()&byFence != 0 {
		return "memory was accessed in the epoch of Fence, which is not over"
	}
	c.admitted.And(^offered)
	return ""
}

// access says what an access epoch for one rank cannot begin in, "" if it can.
// The lock is held.
func (x *epochs) access() string {
	switch {
	case x.fence != closed:
		return "Fence or Free is running"
	case x.all != closed:
		return "LockAll is in force"
	case x.start != closed:
		return "the epoch of Start is not complete"
	}
	return ""
}

// accessAll is access for an epoch that may be for all ranks.
func (x *epochs) accessAll() string {
	if what := x.access(); what != "" || x.locked == 0 {
		return what
	}
	return fmt.Sprintf("%d locks are held", x.locked)
}

// misplaced is the error of a call that does not fit the window's epochs, nil
// for "".
func (c *core) misplaced(op fault.Call, rank int, what string) error {
	if what == "" {
		return nil
	}
	return fail(c.comm, mpi.ErrRMASync, op, rank, -1, -1, "", fmt.Errorf("%s", what))
}
