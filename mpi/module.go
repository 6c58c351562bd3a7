// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"context"

	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/core"
	"gompi/internal/data/dtype"
	"gompi/internal/data/kernel"
	"gompi/internal/engine"
)

// What follows is for packages of this module that stand on what lies below
// mpi: one Core of each handle.

// Core is c as packages of this module use it.
func (c *Comm) Core() core.CommHandle { return (*coreComm)(c) }

// Core is p as packages of this module use it. Of a zero Process it can start
// one.
func (p *Process) Core() core.ProcessHandle { return (*coreProcess)(p) }

// Core is the processes of g.
func (g Group) Core() wire.Members { return g.members }

// Core is b as the engine knows it.
func (b Buf) Core() buffer.Buf { return b.full().b }

// Core is dt as the engine knows it. It has an Err if dt cannot be used.
func (dt Datatype) Core() *dtype.Type { return dt.typ() }

// Core is a predefined operation; false: o is a user's.
func (o Op) Core() (kernel.Op, bool) { return o.code, o.user == nil }

// Core is where r keeps the engine's request. Packages of this module make a
// Request by setting it.
func (r *Request) Core() *engine.Handle { return &r.h }

type coreComm Comm

func (c *coreComm) comm() *Comm               { return (*Comm)(c) }
func (c *coreComm) Comm() *core.Comm          { return &c.core.Comm }
func (c *coreComm) Intra(op fault.Call) error { return c.comm().intra(op) }

func (c *coreComm) Fault(op fault.Call, peer int, f *fault.Fault) error {
	return c.comm().errorOf(op, int32(peer), -1, f)
}

func (c *coreComm) Fail(class fault.Class, op fault.Call, peer int, got, want int64, unit string, why error) error {
	return c.comm().fail(&argFault{class: Class(class), op: op, at: atPeer(peer), got: got, want: want, unit: unit, err: why})
}

func (c *coreComm) Completed(op fault.Call) engine.Handle {
	return c.comm().completed(op, emptyStatus()).h
}

func (c *coreComm) Failed(err error) engine.Handle { return c.comm().failedRequest("", err).h }

func (c *coreComm) Make(a core.Agreed, g core.Groups, name string) (any, error) {
	d, err := c.comm().child(a, g, name)
	return d, err
}

func (c *coreComm) User() context.Context {
	if c.user == nil {
		return context.Background()
	}
	return c.user
}

func (c *coreComm) Meet(op fault.Call, root int, class fault.Class, m protocol.Message) (any, error) {
	d, err := c.comm().meet(op, root, class, m)
	return d, err
}

func (c *coreComm) SendValue(b []byte, dest, tag int) error {
	return c.comm().send("value.Send", BufOf(b), dest, tag, engine.Standard, true)
}

func (c *coreComm) IsendValue(b []byte, dest, tag int) engine.Handle {
	return c.comm().isend("value.Isend", BufOf(b), dest, tag, engine.Standard, true).h
}

func (c *coreComm) ReceiveValue(source, tag int, limit int64) ([]byte, core.Status, error) {
	const op fault.Call = "value.Recv"
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

type coreProcess Process

func (p *coreProcess) Process() *core.Process  { return &p.core }
func (p *coreProcess) Start(b core.Boot) error { return (*Process)(p).start(b) }

func (p *coreProcess) Make(a core.Agreed, g core.Groups, name string) (any, error) {
	c, err := (*Process)(p).newComm(nil, a, g, name)
	return c, err
}

func (p *coreProcess) Beside(op fault.Call, f func() error) engine.Handle {
	c := (*Process)(p).Self().Core().Comm()
	h := c.Engine.NewApart(c.Ctx, op)
	go func() {
		st := engine.Status{Source: AnySource, Tag: AnyTag}
		if err := f(); err != nil {
			st.Fault = &fault.Fault{Class: fault.Reported, Peer: -1, Err: err}
		}
		c.Engine.Complete(h, st)
	}()
	return h
}

func (p *coreProcess) Group(m wire.Members, over []*core.Output, raise func(error)) any {
	g := (*Process)(p).groupOf(m, over)
	g.child.raise = raise
	return g
}
