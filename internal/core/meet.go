// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"gompi/internal/base/fault"
	"gompi/internal/base/group"
	"gompi/internal/base/wire"
	"gompi/internal/engine"
)

// Create from group (MPI 4.1 section 7.4.3): processes agree on a context without a call
// on another communicator. The first of them sends the id to each of the others, and waits
// for nobody. A key tells for which communicator an id is.

// The first byte of a key.
const (
	meetSubgroup = 'g' // of a communicator
	meetGroup    = 'c'
	meetGroups   = 'i'
	meetSet      = 's'
)

// Lend permits that communicators of some of the ranks of c, made from groups, use blocks
// of its shared memory. It must come once, before any call on c.
func (p *Process) Lend(c *Comm) {
	p.lender.Store(c)
	p.Engine.Lend(c.Ctx)
}

// mayLend reports whether all members have the memory of Lend, or will have it: it belongs to
// the processes that were started together. A block of it is offered only when all of these
// have called Lend.
func (p *Process) mayLend(members wire.Members) bool {
	c := p.lender.Load()
	return c != nil && members.Len() > 1 && group.Difference(members, c.Ctx.Members).Len() == 0
}

// Meet makes the processes of g agree on the context of their communicator. All of them
// call it with the same groups and tag, and no other process does. If g has a remote group,
// its processes call it, too.
func (p *Process) Meet(op fault.Call, user context.Context, g Groups, tag string) (Agreed, *fault.Fault) {
	if g.Remote.Len() == 0 {
		b := engine.MeetArgs{Op: op, User: user, Members: g.Local, Key: append([]byte{meetGroup}, tag...), Far: p.far}
		// The others have few blocks, which are for the parts of a Split.
		if g.Local.At(0) == p.Self && p.mayLend(g.Local) && p.lender.Load().Rank == 0 {
			b.Block = p.Engine.OfferLent()
		}
		own := b.Block
		a, f := p.meet(&b, 1)
		if b.Block != 0 && !p.mayLend(g.Local) {
			p.Engine.SkipContext(a.ID)
			return a, wrong(fault.Comm, "its memory is to be that of others")
		}
		if b.Block != 0 {
			a.lentBy(p.lender.Load(), &b, own, f)
		}
		return a, f
	}
	low, _ := g.lowFirst()
	key := append([]byte{meetGroups}, fmt.Sprintf("%d:%s", low.Len(), tag)...)
	return p.meet(&engine.MeetArgs{Op: op, User: user, Members: g.together(), Key: key, Far: p.far}, interSerials)
}

// Meet is Process.Meet for some members of an intracommunicator, who use its shared memory.
// The call disturbs no other call on c.
func (c *Comm) Meet(op fault.Call, user context.Context, members wire.Members, tag uint64) (Agreed, *fault.Fault) {
	parent := c.Ctx.ID
	key := []byte{meetSubgroup}
	key = binary.LittleEndian.AppendUint64(key, uint64(parent.Creator.Job))
	key = binary.LittleEndian.AppendUint32(key, parent.Creator.Serial)
	key = binary.LittleEndian.AppendUint32(key, parent.Serial)
	key = binary.LittleEndian.AppendUint64(key, tag)
	b := engine.MeetArgs{Op: op, User: user, Members: members, Key: key}
	if members.At(0) == c.Proc.Self && members.Len() > 1 {
		b.Block = c.Engine.Offer(c.Ctx)
	}
	own := b.Block
	a, f := c.Proc.meet(&b, 1)
	a.lentBy(c, &b, own, f)
	return a, f
}

// lentBy records that the members use a block of the memory of c, which their first process
// offered; own is that block on this process. With a fault f the block is taken back.
func (a *Agreed) lentBy(c *Comm, b *engine.MeetArgs, own uint32, f *fault.Fault) {
	if a.by, a.giver, a.block, a.own = c, b.Members.At(0), b.Block, own; f != nil {
		a.TakeBack()
	}
}

// meet makes the members agree on the first of n consecutive context ids.
func (p *Process) meet(b *engine.MeetArgs, n uint32) (Agreed, *fault.Fault) {
	gaveUp := b.User != nil && b.User.Err() != nil
	if gaveUp {
		errors.As(context.Cause(b.User), &b.Undone)
	}
	if b.Members.At(0) == p.Self && !gaveUp {
		b.Context = wire.ContextID{Creator: p.Self, Serial: p.NewSerials(n)}
		if b.Far {
			b.Hosts = p.tells(b.Members)
		}
	}
	id, f := p.Engine.Meet(b)
	if f != nil && gaveUp {
		f = lapsed(b.User)
	}
	a := Agreed{Op: b.Op, ID: id}
	if b.Far {
		a.members, a.hosts = b.Members, b.Hosts
	}
	return a, f
}
