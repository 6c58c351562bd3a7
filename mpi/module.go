// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"gompi/internal/buffer"
	"gompi/internal/calls"
	"gompi/internal/dtype"
	"gompi/internal/engine"
	"gompi/internal/fault"
	"gompi/internal/kernel"
)

// What follows is for packages of this module that stand on what lies below
// mpi. A program outside it cannot name what these take and give.

// Internal is the engine of c's process and c's context in it.
func (c *Comm) Internal() (*engine.Engine, *engine.Context) { return c.core.e, c.core.ctx }

// OfferContext is what the caller says in an exchange among all ranks of c of
// a context to be made: what rank 0 says is for Adopt.
func (c *Comm) OfferContext() uint64 { return c.offer(1) }

// Adopt makes a communicator of the ranks of c in the context that rank 0
// offered, with c's error handler. Local. c is an intracommunicator.
func (c *Comm) Adopt(op calls.Name, offer uint64, name string) (*Comm, error) {
	id, err := c.contextOf(op, offer)
	if err != nil {
		return nil, err
	}
	return c.child(id, c.shape(), name)
}

// Intra is an error if c is nil or an intercommunicator.
func (c *Comm) Intra(op calls.Name) error { return c.intra(op) }

// Fault is the error of a call on c that the engine could not do, which c's
// error handler sees.
func (c *Comm) Fault(op calls.Name, peer int, f *fault.Fault) error {
	return c.errorOf(op, int32(peer), -1, f)
}

// Fail is an error of a call on c, which c's error handler sees. Numbers that
// say nothing are -1. c may be nil.
func (c *Comm) Fail(class Class, op calls.Name, peer int, got, want int64, unit string, why error) error {
	return c.argError(class, op, peer, -1, got, want, unit, why)
}

// RequestOf is a request of the engine.
func RequestOf(h engine.Handle) Request { return Request{h} }

// CompletedRequest is a request that is complete.
func (c *Comm) CompletedRequest(op calls.Name) Request { return c.completed(op, emptyStatus()) }

// Engine is b as the engine knows it.
func (b Buf) Engine() buffer.Buf { return b.full().b }

// Engine is dt as the engine knows it. It has an Err if dt cannot be used.
func (dt Datatype) Engine() *dtype.Type { return dt.typ() }

// Kernel is a predefined operation; false: o is a user's.
func (o Op) Kernel() (kernel.Op, bool) { return o.code, o.user == nil }
