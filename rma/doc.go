// SPDX-License-Identifier: Apache-2.0

// Package rma is one-sided access to the memory of other processes: windows,
// MPI 4.1 chapter 12, and memory that a process exposes by itself. A target
// does nothing for it: on one host not even its process has to run.
//
// # Windows
//
// A [Window] is memory of each rank of a communicator that the others may
// access. [Create] makes one of a slice, [Allocate] of memory that it gives,
// [AllocateShared] of memory that all ranks of a host use as their own, and
// [CreateDynamic] of nothing: memory is attached later. What moves is a slice
// of any type without pointers, or a Buf of any datatype:
//
//	win, err := rma.Allocate[float64](world, n)
//	err = win.Lock(rma.LockShared, target, 0)
//	err = rma.Put(win, values, target, offset)
//	err = win.Unlock(target)
//
// An offset counts elements of the target's own type: the T with which it made
// the window, whatever is moved. Nothing outside the target's memory can be
// touched: such an access is ErrRMARange.
//
// # Epochs
//
// Accesses are made between calls that synchronise: between two Fences, between
// Start and Complete, or under a lock. Without that they are ErrRMASync. They
// have happened at the target when the call that ends the epoch returns, or a
// Flush; what Get reads is there then. Until FlushLocal, or one of these, an
// access owns its buffers: what Put reads must not be changed, and what Get writes
// not be used. A request is complete when its buffers are the caller's again.
//
// The memory model is the unified one: what a rank stores in its window and
// what others put there are one memory, and Sync is only an order. Two accesses
// to one place of which one writes are ordered by synchronisation, or both
// atomic: accumulates are, element by element, among each other.
//
// # Giving up
//
// Window.WithContext gives a handle whose calls give up when its context ends,
// with ErrCancelled. A Fence that one rank gives up fails on the others, too,
// with ErrAborted, unless they have left it already.
//
// # Failure
//
// A call that needs a process that has failed gives ErrProcFailed, as does Free
// when any rank of the window has: others may not know yet, so memory given to
// Create is not to be used again for something else while they run.
//
// # Exposed memory
//
// [Expose] makes memory accessible to whoever holds its [Key]: no other process
// takes part. [Open] turns a key into a [Remote].
package rma
