// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"gompi/internal/base/fault"
	"gompi/internal/engine"
)

// completed is a request that is already complete: operations with ProcNull.
func (c *Comm) completed(op fault.Call, st Status) Request {
	return Request{c.core.Engine.NewDone(c.core.Ctx, op, engine.Status{Source: int32(st.Source), Tag: int32(st.Tag)})}
}

// failedRequest is a request that is complete with an error found in the
// arguments. c may be nil.
func (c *Comm) failedRequest(op fault.Call, err error) Request {
	f := &fault.Fault{Class: fault.Reported, Peer: -1, Err: err}
	if c == nil {
		return Request{engine.NewOrphan(engine.Outcome{Op: op, Peer: -1, Tag: -1, Status: engine.Status{Fault: f}})}
	}
	return Request{c.core.Engine.NewDone(c.core.Ctx, op, engine.Status{Fault: f})}
}

// request is one that was started, or why it could not be.
func (c *Comm) request(op fault.Call, peer, tag int32, h engine.Handle, f *fault.Fault) Request {
	if f != nil {
		return c.failedRequest(op, c.errorOf(op, peer, tag, f))
	}
	return Request{h}
}
