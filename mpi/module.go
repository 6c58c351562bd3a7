// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/internal/buffer"
	"gompi/internal/calls"
	"gompi/internal/core"
	"gompi/internal/dtype"
	"gompi/internal/engine"
	"gompi/internal/fault"
	"gompi/internal/kernel"
	"gompi/internal/wire"
)

// What follows is for packages of this module that stand on what lies below
// mpi: one Core of each handle, and the way back where one is needed.

// Core is c as packages of this module use it.
func (c *Comm) Core() core.Comm { return (*coreComm)(c) }

// CommOf is the communicator of a Core.
func CommOf(c core.Comm) *Comm { return (*Comm)(c.(*coreComm)) }

// Core is p as packages of this module use it.
func (p *Process) Core() core.Process { return (*coreProcess)(p) }

// Core is the processes of g.
func (g Group) Core() wire.Members { return g.members }

// Core is b as the engine knows it.
func (b Buf) Core() buffer.Buf { return b.full().b }

// Core is dt as the engine knows it. It has an Err if dt cannot be used.
func (dt Datatype) Core() *dtype.Type { return dt.typ() }

// Core is a predefined operation; false: o is a user's.
func (o Op) Core() (kernel.Op, bool) { return o.code, o.user == nil }

// RequestOf is a request of the engine.
func RequestOf(h engine.Handle) Request { return Request{h} }

type coreComm Comm

func (c *coreComm) comm() *Comm               { return (*Comm)(c) }
func (c *coreComm) Engine() *engine.Engine    { return c.core.e }
func (c *coreComm) Context() *engine.Context  { return c.core.ctx }
func (c *coreComm) Intra(op calls.Name) error { return c.comm().intra(op) }

func (c *coreComm) Fault(op calls.Name, peer int, f *fault.Fault) error {
	return c.comm().errorOf(op, int32(peer), -1, f)
}

func (c *coreComm) Fail(class fault.Class, op calls.Name, peer int, got, want int64, unit string, why error) error {
	return c.comm().argError(Class(class), op, peer, -1, got, want, unit, why)
}

func (c *coreComm) Completed(op calls.Name) engine.Handle {
	return c.comm().completed(op, emptyStatus()).h
}

func (c *coreComm) Failed(err error) engine.Handle { return c.comm().failedRequest("", err).h }

func (c *coreComm) Offer() uint64 { return c.comm().offer(1) }

func (c *coreComm) Adopt(op calls.Name, offer uint64, name string) (core.Comm, error) {
	id, err := c.comm().contextOf(op, offer)
	if err != nil {
		return nil, err
	}
	d, err := c.comm().child(id, c.comm().shape(), name)
	if err != nil {
		return nil, err
	}
	return d.Core(), nil
}

func (c *coreComm) SendValue(b []byte, dest, tag int) error {
	return c.comm().send("value.Send", BufOf(b), dest, tag, engine.Standard, true)
}

func (c *coreComm) IsendValue(b []byte, dest, tag int) engine.Handle {
	return c.comm().isend("value.Isend", BufOf(b), dest, tag, engine.Standard, true).h
}

func (c *coreComm) ReceiveValue(source, tag int, limit int64) ([]byte, core.Status, error) {
	const op calls.Name = "value.Recv"
	m, st, err := c.comm().probeFor(op, source, tag)
	if err != nil {
		return nil, core.Status(st), err
	}
	var b []byte
	var noRoom error
	if st.Value && st.Bytes <= limit {
		if noRoom = c.comm().roomFor(op, &st); noRoom == nil {
			b = make([]byte, st.Bytes)
		}
	}
	st, err = m.irecv(op, BufOf(b), true).Wait()
	if noRoom != nil {
		err = instead(err, noRoom)
	}
	return b, core.Status(st), err
}

func (c *coreComm) SetTable(t *selection.Table) {
	if t == nil {
		t = c.core.proc.table
	}
	c.core.table = t
}

func (c *coreComm) SelectionArgs(op collectives.Op, elemBytes int64) collectives.Args {
	x := call{c: c.comm()}
	x.begin(c.comm(), op)
	c.comm().share(&x.Args, elemBytes)
	return x.Args
}

type coreProcess Process

func (p *coreProcess) Control() core.Control { return p.ctl }
func (p *coreProcess) Queues() string        { return p.e.Queues() }

func (p *coreProcess) Kill(cut func()) {
	if p.done.Swap(true) {
		return
	}
	p.ctl.Close() // whoever is dead does not answer when others miss it
	if cut != nil {
		cut()
	}
	p.cancel(errFinalized)
	p.e.Close(p.ctx)
	p.events.Wait()
}

func (p *coreProcess) Keep(key any, make func() any) any {
	if v, ok := p.kept.Load(key); ok {
		return v
	}
	v, _ := p.kept.LoadOrStore(key, make())
	return v
}

func (p *coreProcess) CommFromSet(s wire.Set) (core.Comm, error) {
	c, err := (*Process)(p).newComm(s.Context(p.self.Job), s.Members, s.URI)
	if err != nil {
		return nil, err
	}
	return c.Core(), nil
}
