// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"sync/atomic"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/internal/engine"
	"gompi/internal/wire"
)

// Comm is what all handles of a communicator share below package mpi.
// Immutable but for the fields that guard themselves, and Table (SetTable).
type Comm struct {
	Proc   *Process
	Engine *engine.Engine
	Ctx    *engine.Context
	Rank   int
	Size   int
	// Targets is the number of ranks that messages go to: the size of the
	// remote group of an intercommunicator.
	Targets int
	Table   *selection.Table
	// Nodes says which ranks share a host; nil: all do, as far as is known,
	// or it is an intercommunicator. Where all do and are many, teams, it
	// divides them.
	Nodes *collectives.Nodes
	teams bool
	Check *Checker // nil without GOMPI_CHECK
	// Both is the communicator of both groups of an intercommunicator, the low
	// one first, which is the local one if Low; nil in an intracommunicator.
	Both *Comm
	Low  bool

	freed atomic.Bool // Last was called
	name  atomic.Pointer[string]
}

// Init makes a zero Comm one that has no context yet.
func (c *Comm) Init(p *Process, name *string) {
	c.Proc, c.Engine, c.Table, c.Check = p, p.Engine, p.Table, p.Check
	c.name.Store(name)
}

// Register gives c its context. owner is the context's for the layer above.
func (c *Comm) Register(id wire.ContextID, members wire.Members, owner any) error {
	ctx, err := c.Engine.NewContext(id, members, owner)
	return c.registered(ctx, err)
}

// RegisterIn is Register of one that is made from another one, whose board lies at
// a place that a member has offered: see engine.NewContextIn.
func (c *Comm) RegisterIn(parent *engine.Context, place uint32, id wire.ContextID, members wire.Members, owner any) error {
	ctx, err := c.Engine.NewContextIn(parent, place, id, members, owner)
	return c.registered(ctx, err)
}

func (c *Comm) registered(ctx *engine.Context, err error) error {
	if err != nil {
		return fmt.Errorf("gompi: communicator %s: %w", c.Name(), err)
	}
	members := ctx.Members
	c.Ctx, c.Rank, c.Size, c.Targets = ctx, ctx.Rank, members.Len(), members.Len()
	if hosts := c.Proc.HostsOf(members); hosts != nil {
		if nodes := collectives.NewNodes(hosts); nodes.Len() > 1 {
			c.Nodes = nodes
		}
	}
	if c.Nodes == nil {
		c.Nodes = collectives.Teams(c.Size)
		c.teams = c.Nodes != nil
	}
	return nil
}

// RegisterInter gives c its context between two groups, which stand together in
// both, the local one first if low.
func (c *Comm) RegisterInter(id wire.ContextID, local, remote wire.Members, both *Comm, low bool, owner any) error {
	ctx, err := c.Engine.NewInterContext(id, local, remote, owner)
	if err != nil {
		return fmt.Errorf("gompi: communicator %s: %w", c.Name(), err)
	}
	c.Ctx, c.Rank, c.Size, c.Targets = ctx, ctx.Rank, local.Len(), remote.Len()
	c.Both, c.Low = both, low
	return nil
}

// Name is the communicator's name, which errors and roll calls show.
func (c *Comm) Name() string { return *c.name.Load() }

// SetName gives the communicator a name in this process.
func (c *Comm) SetName(name string) { c.name.Store(&name) }

// Last claims the end of the communicator, which comes once.
func (c *Comm) Last() (first bool) { return !c.freed.Swap(true) }

// SetTable makes later collective calls select their algorithms by t; nil means
// by the table that the process began with. Local, but all ranks must set equal
// tables between the same two collective calls, and nobody else may use the
// communicator meanwhile.
func (c *Comm) SetTable(t *selection.Table) {
	if t == nil {
		t = c.Proc.Table
	}
	c.Table = t
}
