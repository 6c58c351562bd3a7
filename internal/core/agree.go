// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"

	"gompi/collectives"
	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/dtype"
	"gompi/internal/data/kernel"
	"gompi/internal/engine"
)

// Agreed is what processes have agreed on for a communicator to be made: its
// context id, and the memory in which its ranks meet. Where no other
// communicator has a part in it, Op and ID are all: an id that the launcher has
// told with a process set, say.
type Agreed struct {
	Op fault.Call // which makes the communicator
	ID wire.ContextID

	// by is the communicator whose ranks have agreed, nil: none. block is the place
	// in its memory that giver, one of them, has offered, 0: none; own is what this
	// process has offered.
	by         *Comm
	giver      wire.ProcID
	block, own uint32

	// hosts is where members are, if all have been told the same of them; else by
	// says it.
	members wire.Members
	hosts   wire.Hosts
}

// One process chooses the id for all: serials only grow, so nobody has to be
// asked what is free. It is the first of those that agree, of an
// intercommunicator the first of the low group. Groups that have no process in
// common share the id. An offer is what a rank tells of both: of rank 0 the
// serial, and above it the place of a block that the rank offers, 0: none.
const blockBits = 32

func blockIn(offer uint64) uint32 { return uint32(offer >> blockBits) }

// interSerials is how many context ids an intercommunicator takes: its own, and
// the next for both groups together.
const interSerials = 2

// serials is how many context ids a communicator takes that is of the same kind.
func (c *Comm) serials() uint32 {
	if c.Both != nil {
		return interSerials
	}
	return 1
}

// serial is the part of an offer in which rank 0 tells of n new contexts.
func (c *Comm) serial(n uint32) uint64 {
	if c.Rank == 0 {
		return uint64(c.Proc.NewSerials(n))
	}
	return 0
}

// Offer is what the caller says of a context in an exchange of the caller's own
// among all ranks of an intracommunicator. AgreeOn takes what rank 0 has said.
func (c *Comm) Offer() uint64 {
	offer := c.serial(1)
	if c.Rank == 0 {
		offer |= uint64(c.Engine.Offer(c.Ctx)) << blockBits
	}
	return offer
}

// OfferID is Offer without memory: of what is made often, and mostly has no
// collectives.
func (c *Comm) OfferID() uint64 { return c.serial(1) }

// AgreeOn is the context that rank 0 has offered.
func (c *Comm) AgreeOn(op fault.Call, offer uint64) (Agreed, *fault.Fault) {
	own := uint32(0)
	if c.Rank == 0 {
		own = blockIn(offer)
	}
	return c.agreeOn(op, offer, own)
}

// agreeOn is AgreeOn on a rank that has offered a block of its own.
func (c *Comm) agreeOn(op fault.Call, offer uint64, own uint32) (Agreed, *fault.Fault) {
	a := Agreed{Op: op, by: c, giver: c.Ctx.Members.At(0), block: blockIn(offer), own: own}
	var f *fault.Fault
	if a.ID, f = contextOf(a.giver, offer&(1<<blockBits-1)); f != nil {
		a.TakeBack()
	}
	return a, f
}

// contextOf is a context of which another process has told the serial. There is
// one after it.
func contextOf(creator wire.ProcID, serial uint64) (wire.ContextID, *fault.Fault) {
	if serial == 0 || serial >= wire.MaxSerial {
		return wire.ContextID{}, wrong(fault.Comm, "process %v has no context id left", creator)
	}
	return wire.ContextID{Creator: creator, Serial: uint32(serial)}, nil
}

// TakeBack takes back the block that this process has offered, of which nobody
// makes use.
func (a *Agreed) TakeBack() {
	if a.own != 0 {
		a.by.Engine.TakeBack(a.by.whole().Ctx, a.own)
		a.own = 0
	}
}

// Decline says that this process is not in what the others make.
func (a *Agreed) Decline() {
	a.TakeBack()
	c := a.by
	c.Engine.SkipContext(a.ID)
	if c.Both != nil {
		c.Engine.SkipContext(a.ID.Next())
	}
}

// Agree makes all ranks of c agree on a context for a communicator of its kind.
// Collective over c.
func (c *Comm) Agree(op fault.Call, user context.Context) (Agreed, *fault.Fault) {
	u := c.whole()
	offer := []uint64{u.serial(c.serials())}
	told := u.telling(op, user, 0, buffer.Words(offer))
	if c.Both == nil && c.Rank == 0 {
		told.Offer = &offer[0]
	}
	if f := u.Run(&told); f != nil {
		return Agreed{}, c.fromWhole(f)
	}
	return c.agreed(u.AgreeOn(op, offer[0]))
}

// agreed is what the ranks of the whole have agreed on as what those of c have.
func (c *Comm) agreed(a Agreed, f *fault.Fault) (Agreed, *fault.Fault) {
	a.by = c
	return a, f
}

// Agreement is an Agree under way.
type Agreement struct {
	op    fault.Call
	c     *Comm
	offer [1]uint64
	told  engine.Handle
	f     *fault.Fault
}

// StartAgree starts an Agree.
func (c *Comm) StartAgree(op fault.Call, user context.Context) *Agreement {
	u := c.whole()
	x := &Agreement{op: op, c: c}
	if c.Both == nil {
		x.offer[0] = c.Offer()
	} else {
		x.offer[0] = u.serial(c.serials())
	}
	told := u.telling(op, user, 0, buffer.Words(x.offer[:]))
	x.told, x.f = u.Start(&told)
	return x
}

// Wait waits for the end of an Agree.
func (x *Agreement) Wait() (Agreed, *fault.Fault) {
	u := x.c.whole()
	f := x.f
	if f == nil {
		o := u.Engine.Wait(x.told)
		f = o.Status.Fault
	}
	if f != nil {
		return Agreed{}, x.c.fromWhole(f)
	}
	return x.c.agreed(u.AgreeOn(x.op, x.offer[0]))
}

// AgreeWith is Agree of an intracommunicator whose ranks reduce words in the same
// exchange, of which the first is Agree's own: 0.
func (c *Comm) AgreeWith(op fault.Call, user context.Context, words []uint64, by kernel.Op) (Agreed, *fault.Fault) {
	words[0] = c.serial(1)
	a := c.exchange(op, user, collectives.OpAllreduce)
	a.In, a.Out = buffer.Words(words), buffer.Words(words)
	a.Args.Count, a.Args.InPlace = int64(len(words)), true
	a.Kernel, a.KernelName, a.Commutative = kernel.Of(by, dtype.Uint64), "a reduction", true
	if c.Rank == 0 {
		a.Offer = &words[0]
	}
	if f := c.Run(&a); f != nil {
		return Agreed{}, f
	}
	return c.AgreeOn(op, words[0])
}

// Choice is what a rank says in Choices.
type Choice struct {
	Color, Key int64
	offer      uint64
}

// Choices exchanges the colors and keys of all ranks, with a context for
// communicators of the kind of c, and the blocks of those that offer one, of the
// memory of all. The low group of an intercommunicator comes first. Collective over c.
func (c *Comm) Choices(op fault.Call, user context.Context, color, key int, offers bool) ([]Choice, Agreed, *fault.Fault) {
	u := c.whole()
	words := make([]uint64, 3*u.Size)
	mine := words[3*u.Rank:][:3]
	mine[0], mine[1], mine[2] = uint64(color), uint64(key), u.serial(c.serials())
	told := u.exchange(op, user, collectives.OpAllgather)
	told.In, told.Out = buffer.Words(mine), buffer.Words(words)
	told.Args.Count, told.Args.InPlace = int64(len(mine)), true
	if offers {
		told.Offer = &mine[2]
	}
	if f := u.Run(&told); f != nil {
		return nil, Agreed{}, c.fromWhole(f)
	}
	all := make([]Choice, u.Size)
	for i := range all {
		w := words[3*i:]
		all[i] = Choice{int64(w[0]), int64(w[1]), w[2]}
	}
	a, f := c.agreed(u.agreeOn(op, all[0].offer, blockIn(mine[2])))
	return all, a, f
}

// Lend says whose memory the communicator uses: that of a rank which had its
// choice. It is the same on all members.
func (a *Agreed) Lend(all []Choice, rank int) {
	a.giver, a.block = a.by.Ctx.Members.At(rank), blockIn(all[rank].offer)
}

// exchange is a collective call of words among all ranks, a part of op.
func (c *Comm) exchange(op fault.Call, user context.Context, kind collectives.Op) engine.CollArgs {
	a := engine.CollArgs{Op: op, User: user}
	a.Args, a.Unit = c.args(kind), dtype.Word.Size
	return a
}

// telling is a broadcast of rank root.
func (c *Comm) telling(op fault.Call, user context.Context, root int, b buffer.Buf) engine.CollArgs {
	a := c.exchange(op, user, collectives.OpBcast)
	a.Out, a.Unit = b, b.Type.Size
	a.Args.Root, a.Args.Count = root, b.Count()
	return a
}
