// SPDX-License-Identifier: Apache-2.0

package core

import (
	"sync/atomic"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine"
)

// Comm is a communicator below package mpi; all its handles share it. It is immutable,
// but for atomic fields and Table (SetTable).
type Comm struct {
	Proc   *Process
	Engine *engine.Engine
	Ctx    *engine.Context
	Rank   int
	Size   int
	// Targets is the number of ranks that messages can go to: Size, or the size of the
	// remote group of an intercommunicator.
	Targets int
	Table   *selection.Table
	// Nodes groups the ranks by host. It is nil if all are on one host, as far as is known,
	// and in an intercommunicator. If one host has many ranks, teams is true, and Nodes
	// divides them into teams.
	Nodes   *collectives.Nodes
	teams   bool
	hosts   wire.Hosts // see Hosts
	Check   *Checker   // nil without GOMPI_CHECK
	checked bool       // calls are compared, by Check or by the process's CallTable
	// Both is the hidden communicator of both groups of an intercommunicator, the low one
	// first; nil in an intracommunicator. Low is true if the local group is the low one.
	Both *Comm
	Low  bool

	over  []*Output   // see Over
	freed atomic.Bool // Last was called
	name  atomic.Pointer[string]
}

// Init initialises a zero Comm. Register gives it its context.
func (c *Comm) Init(p *Process, name *string) {
	c.Proc, c.Engine, c.Table, c.Check = p, p.Engine, p.Table, p.Check
	c.checked = p.Check != nil || p.calls != nil
	c.name.Store(name)
}

// Register gives c, which Init has initialised, the context that its processes agreed on.
// owner is the value of the layer above that the context keeps. Local.
func (c *Comm) Register(a *Agreed, g Groups, owner any) *fault.Fault {
	f := c.register(a, g, owner)
	if f == nil && c.Check != nil && owner != nil {
		c.Check.made(c)
	}
	return f
}

func (c *Comm) register(a *Agreed, g Groups, owner any) *fault.Fault {
	if g.Remote.Len() > 0 {
		return c.registerInter(a, g, owner)
	}
	var err error
	by, block := a.by, a.lent(g.Local)
	if by == nil || by.Both != nil && block == 0 { // it has no parent, or the merged communicator becomes the program's world
		c.Ctx, err = c.Engine.NewContext(a.ID, g.Local, owner)
	} else {
		c.Ctx, err = c.Engine.NewContextIn(by.whole().Ctx, block, a.ID, g.Local, owner)
	}
	if err != nil {
		return c.unregistered(err)
	}
	c.Rank, c.Size, c.Targets = c.Ctx.Rank, g.Local.Len(), g.Local.Len()
	c.hosts = a.hostsOf(g.Local)
	if c.Proc.far && c.Hosts() == nil {
		// Each may be alone on its host.
		if err := c.Engine.Divide(c.Ctx, []int32{int32(c.Rank)}); err != nil {
			return c.unregistered(err)
		}
	}
	if len(c.hosts) > 1 || c.Proc.perHost > 0 {
		if nodes := collectives.NewNodes(c.Hosts()); nodes.Len() > 1 {
			c.Nodes = nodes
			if err := c.Engine.Divide(c.Ctx, nodes.Ranks(nodes.Of(c.Rank))); err != nil {
				return c.unregistered(err)
			}
		}
	}
	if by := a.by; c.Nodes == nil && by != nil && by.teams && by.Size == c.Size {
		c.Nodes, c.teams = by.Nodes, true // they depend on the size alone
	} else if c.Nodes == nil {
		c.Nodes = collectives.Teams(c.Size)
		c.teams = c.Nodes != nil
	}
	return nil
}

func (c *Comm) unregistered(err error) *fault.Fault {
	return wrong(fault.Comm, "communicator %s: %w", c.Name(), err)
}

// lent returns the place of the shared block that the members use, 0 if there is none. A
// block that this process offered and nobody uses is taken back.
func (a *Agreed) lent(members wire.Members) uint32 {
	if a.by == nil {
		return 0
	}
	if members.Len() == 1 || members.Index(a.giver) < 0 {
		a.block = 0
	}
	if a.by.Both != nil && members.At(0) != a.giver { // it would have few blocks for its children
		a.block = 0
	}
	if a.giver != a.by.Proc.Self || a.block == 0 {
		a.TakeBack()
	}
	return a.block
}

// registerInter is Register of an intercommunicator.
func (c *Comm) registerInter(a *Agreed, g Groups, owner any) *fault.Fault {
	x := &struct {
		both Comm
		name string
	}{name: c.Name() + " (both groups)"}
	x.both.Init(c.Proc, &x.name)
	all := g.together()
	if f := x.both.Register(&Agreed{Op: a.Op, ID: a.ID.Next(), members: all, hosts: a.hostsOf(all)}, Groups{Local: all}, nil); f != nil {
		return f
	}
	ctx, err := c.Engine.NewInterContext(a.ID, g.Local, g.Remote, owner)
	if err != nil {
		x.both.Free()
		return c.unregistered(err)
	}
	c.Ctx, c.Rank, c.Size, c.Targets = ctx, ctx.Rank, g.Local.Len(), g.Remote.Len()
	c.Both, c.Low = &x.both, g.Low
	return nil
}

// Free closes c for new calls: see engine.FreeContext.
func (c *Comm) Free() {
	if c.Check != nil {
		c.Check.gone(c)
	}
	if t := c.Proc.calls; t != nil {
		t.gone(c)
	}
	c.Engine.FreeContext(c.Ctx)
	if c.Both != nil {
		c.Both.Free()
	}
}

// Revoke makes c unusable on all its ranks.
func (c *Comm) Revoke() { c.RevokeBy(0) }

// RevokeBy is Revoke because a change was rolled back; 0: because of none.
func (c *Comm) RevokeBy(undone fault.Rollback) {
	c.Ctx.RevokeBy(undone)
	if c.Both != nil {
		c.Both.RevokeBy(undone)
	}
}

// Name returns the communicator's name, which errors and reports show.
func (c *Comm) Name() string { return *c.name.Load() }

// SetName gives the communicator a name in this process.
func (c *Comm) SetName(name string) { c.name.Store(&name) }

// Last claims the end of the communicator: the first call returns true.
func (c *Comm) Last() (first bool) { return !c.freed.Swap(true) }

// SetTable makes later collective calls select their algorithms by t; nil means by the
// table that the process began with. Local, but all ranks must set equal tables between the
// same two collective calls, and no other goroutine may use the communicator meanwhile.
func (c *Comm) SetTable(t *selection.Table) {
	if t == nil {
		t = c.Proc.Table
	}
	c.Table = t
	c.Ctx.ForgetFastColl()
}
