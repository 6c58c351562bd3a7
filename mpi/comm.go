// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"context"
	"errors"
	"sync/atomic"

	"gompi/internal/base/fault"
	"gompi/internal/core"
)

// Comm is a communicator: an ordered group of processes with a context of its
// own, so that its messages match no others. A Comm is a small handle; copies
// made by WithContext are the same communicator. Safe for all goroutines.
// MPI 4.1 chapter 7.
type Comm struct {
	core *commCore
	user context.Context // nil: calls do not give up
}

// commCore is what all handles of a communicator share: what packages below
// know, and what only this one does. The fields are immutable or guard
// themselves.
type commCore struct {
	core.Comm
	proc *Process
	topo *topology // nil without one

	handler atomic.Pointer[ErrorHandler]
	info    atomic.Pointer[Info] // never changed in place
	attrs   attributes
	buffer  atomic.Pointer[sendBuffer] // nil until used
	space   *sendBuffer                // of what it was made from, see SendBuffer.Serve; nil: none
}

// newComm makes a communicator on whose context processes have agreed. from is
// what it was made from, nil: nothing.
func (p *Process) newComm(from *Comm, a core.Agreed, g core.Groups, name string) (*Comm, error) {
	c := p.blankComm(name)
	if err := c.register(from, &a, g); err != nil {
		return nil, err
	}
	return c, nil
}

// register makes a blank communicator that of newComm.
func (c *Comm) register(from *Comm, a *core.Agreed, g core.Groups) error {
	if from != nil {
		c.core.handler.Store(from.core.handler.Load())
		c.core.space = from.core.space
	}
	if f := c.core.Register(a, g, c); f != nil {
		return from.errorOf(a.Op, ProcNull, -1, f)
	}
	if from != nil {
		c.core.Over(from.core.Outputs())
	}
	return nil
}

// blankComm is a communicator that has no context yet.
func (p *Process) blankComm(name string) *Comm {
	x := &struct {
		Comm
		core commCore
		name string
	}{core: commCore{proc: p}, name: name}
	x.Comm.core = &x.core
	x.core.Init(&p.core, &x.name)
	return &x.Comm
}

// Rank is the caller's rank, 0 <= Rank < Size. Local. MPI 4.1 section 7.4.1.
func (c *Comm) Rank() int { return c.of("Rank").Rank }

// Size is the number of ranks. Local. MPI 4.1 section 7.4.1.
func (c *Comm) Size() int { return c.of("Size").Size }

// Name is the communicator's name, which errors and roll calls show. A new
// communicator is named after what it was made from. Local.
// MPI 4.1 section 7.8.
func (c *Comm) Name() string { return c.of("Name").Name() }

// SetName gives the communicator a name in this process. Local.
// MPI 4.1 section 7.8.
func (c *Comm) SetName(name string) { c.of("SetName").SetName(name) }

// Group is the communicator's group, the local one of an intercommunicator.
// Local. MPI 4.1 section 7.3.2.
func (c *Comm) Group() Group { return c.of("Group").proc.groupOf(c.core.Ctx.Members, c.core.Outputs()) }

// Compare tells how two communicators compare: Ident if they are the same one,
// Congruent if only their contexts differ, Similar if also the order of their
// ranks does. Those of intercommunicators compare group by group; with an
// intracommunicator they are Unequal. Local. MPI 4.1 sections 7.4.1 and 7.6.1.
func (c *Comm) Compare(d *Comm) Comparison {
	if c.of("Compare") == d.of("Compare") {
		return Ident
	}
	x, y := c.core.Ctx, d.core.Ctx
	return min(compare(x.Members, y.Members), compare(x.Remote, y.Remote), Congruent)
}

// SetInfo replaces the communicator's hints by a copy of info, on this
// process. No hint is known to this library: they are kept for the program.
// MPI 4.1 section 7.4.4.
func (c *Comm) SetInfo(info *Info) { c.of("SetInfo").info.Store(info.Dup()) }

// Info returns a copy of the communicator's hints. Local.
// MPI 4.1 section 7.4.4.
func (c *Comm) Info() *Info { return c.of("Info").info.Load().Dup() }

// Process is the process that holds the communicator.
func (c *Comm) Process() *Process { return c.of("Process").proc }

// WithContext returns the same communicator for calls that give up when ctx
// ends; see "Giving up" in the package documentation. Local.
func (c *Comm) WithContext(ctx context.Context) *Comm {
	d := &Comm{core: c.of("WithContext"), user: ctx}
	if ctx == nil {
		panic("gompi: WithContext(nil)")
	}
	if ctx.Done() == nil {
		d.user = nil
	}
	return d
}

// expired is the error of a call whose context has ended before it began.
func (c *Comm) expired(op fault.Call, peer, tag int) error {
	if c.user == nil {
		return nil
	}
	return c.raise(c.lapsed(op, peer, tag))
}

// lapsed is expired without the error handler.
func (c *Comm) lapsed(op fault.Call, peer, tag int) *Error {
	if c.user == nil || c.user.Err() == nil {
		return nil
	}
	return c.newError(&argFault{class: ErrCancelled, op: op, at: atPeerTag(peer, tag), err: context.Cause(c.user)})
}

// Free ends the communicator on this rank for new calls, which fail with
// ErrComm, as do probes that wait. Pending operations complete as if it lived
// and must be waited for as always; a partitioned operation that is not under
// way cannot be started any more. A message that no pending operation can
// receive is dropped: its sender completes. A call that another goroutine
// makes at the same time is a new one or a pending one.
//
// Attributes are deleted first, the last one set before the others; then a
// buffer attached to c is detached, which waits as its Detach does. Errors
// of both are returned, and the communicator is freed nevertheless. To free it
// again is ErrComm. Local in effect; every rank should free it.
// MPI 4.1 section 7.4.3.
func (c *Comm) Free() error {
	if err := c.last(opFree); err != nil {
		return err
	}
	return c.free()
}

// last claims the end of the communicator, which comes once.
func (c *Comm) last(op fault.Call) error {
	if err := c.exists(op); err != nil {
		return err
	}
	if !c.core.Last() {
		return c.fail(&argFault{class: ErrComm, op: op, err: errFreed})
	}
	return nil
}

func (c *Comm) free() error {
	err := c.deleteAttrs()
	if c.core.buffer.Load().attached() {
		_, lost := c.SendBuffer().Detach()
		err = errors.Join(err, lost)
	}
	c.core.Free()
	return err
}

// Disconnect is Free that returns when the pending operations are complete, or
// with ErrCancelled when c's context ends: then they go on.
// MPI 4.1 section 11.10.4.
func (c *Comm) Disconnect() error {
	if err := c.last(opDisconnect); err != nil {
		return err
	}
	err := c.free()
	if f := c.core.Engine.Settled(c.core.Ctx, opDisconnect, c.user); f != nil {
		err = errors.Join(err, c.errorOf(opDisconnect, ProcNull, -1, f))
	}
	return err
}

const opDisconnect fault.Call = "Disconnect"

// Revoke makes the communicator unusable on all its ranks: operations on it,
// pending and later, fail with ErrRevoked. Any rank may call it; it is not
// collective.
func (c *Comm) Revoke() { c.of("Revoke").Revoke() }

// Revoked reports whether the communicator was revoked. Local.
func (c *Comm) Revoked() bool { return c.of("Revoked").Ctx.Revoked() }

// Failed returns the ranks that this process knows to have failed, those of
// the remote group of an intercommunicator. Local.
func (c *Comm) Failed() []int { return c.of("Failed").Ctx.Failed() }

// FailedLocal is Failed for the local group of an intercommunicator. Local.
func (c *Comm) FailedLocal() []int { return c.of("FailedLocal").Ctx.FailedLocal() }

// AckFailed acknowledges the failures known now, so that receives from
// AnySource work again among the living. Local; returns how many there are.
func (c *Comm) AckFailed() int { return c.of("AckFailed").Ctx.AckFailed() }

// Transport names what carries messages between the caller and a rank: "shm",
// "tcp", "inproc" or "self"; before the first message that of the memory in which
// their collectives meet, or "". Local.
func (c *Comm) Transport(rank int) string {
	if rank < 0 || rank >= c.of("Transport").Targets {
		return ""
	}
	return c.core.Engine.TransportOf(c.core.Ctx, rank)
}
