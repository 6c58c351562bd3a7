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

// Agreed is the outcome of an agreement on a new communicator: its context id, and the
// shared block that its ranks use. Only Op and ID are set if no other communicator took
// part, for example for an id that came with a process set.
type Agreed struct {
	Op fault.Call // which makes the communicator
	ID wire.ContextID

	// by is the communicator whose ranks agreed, or nil. block is the place of the block in
	// its memory that giver, one of them, offered, 0 if none; own is the block that this
	// process offered.
	by         *Comm
	giver      wire.ProcID
	block, own uint32

	// hosts are the hosts of members, if all were told the same; else by knows them.
	members wire.Members
	hosts   wire.Hosts
}

// One process chooses the id for all: its serials only grow, so it need not ask which are
// free. It is the first process of those that agree, in an intercommunicator the first of
// the low group. Groups without a common process may share an id.
//
// An offer is one word: rank 0 puts the serial into the lower half; any rank may put the
// place of a block that it offers into the upper half, 0 if it offers none.
const blockBits = 32

func blockIn(offer uint64) uint32 { return uint32(offer >> blockBits) }

// interSerials is how many context ids an intercommunicator takes: its own, and
// the next for both groups together.
const interSerials = 2

// serials returns how many context ids a communicator of the same kind takes.
func (c *Comm) serials() uint32 {
	if c.Both != nil {
		return interSerials
	}
	return 1
}

// serial returns the lower half of an offer: on rank 0 the first of n new serials.
func (c *Comm) serial(n uint32) uint64 {
	if c.Rank == 0 {
		return uint64(c.Proc.NewSerials(n))
	}
	return 0
}

// Offer returns the word of this rank for an agreement that the caller exchanges itself among
// all ranks of an intracommunicator. AgreeOn takes the word of rank 0.
func (c *Comm) Offer() uint64 {
	offer := c.serial(1)
	if c.Rank == 0 {
		offer |= uint64(c.Engine.Offer(c.Ctx)) << blockBits
	}
	return offer
}

// OfferID is Offer without memory, for communicators that are made often and rarely make
// collective calls.
func (c *Comm) OfferID() uint64 { return c.serial(1) }

// AgreeOn returns the agreement on the context that rank 0 offered.
func (c *Comm) AgreeOn(op fault.Call, offer uint64) (Agreed, *fault.Fault) {
	own := uint32(0)
	if c.Rank == 0 {
		own = blockIn(offer)
	}
	return c.agreeOn(op, offer, own)
}

// agreeOn is AgreeOn on a rank that offered the block own.
func (c *Comm) agreeOn(op fault.Call, offer uint64, own uint32) (Agreed, *fault.Fault) {
	a := Agreed{Op: op, by: c, giver: c.Ctx.Members.At(0), block: blockIn(offer), own: own}
	var f *fault.Fault
	if a.ID, f = contextOf(a.giver, offer&(1<<blockBits-1)); f != nil {
		a.TakeBack()
	}
	return a, f
}

// contextOf returns the context id with a serial that another process sent. The next serial
// is valid, too.
func contextOf(creator wire.ProcID, serial uint64) (wire.ContextID, *fault.Fault) {
	if serial == 0 || serial >= wire.MaxSerial {
		return wire.ContextID{}, wrong(fault.Comm, "process %v has no context id left", creator)
	}
	return wire.ContextID{Creator: creator, Serial: uint32(serial)}, nil
}

// TakeBack takes back the block that this process offered and nobody uses.
func (a *Agreed) TakeBack() {
	if a.own != 0 {
		a.by.Engine.TakeBack(a.by.whole().Ctx, a.own)
		a.own = 0
	}
}

// Decline ends the agreement on a process that is no member of the new communicator.
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

// agreed turns an agreement of the merged communicator into one of c.
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

// AgreeWith is Agree for an intracommunicator whose ranks reduce words in the same exchange.
// words[0] belongs to Agree, and must be 0.
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

// Choice is the contribution of a rank to Choices.
type Choice struct {
	Color, Key int64
	offer      uint64
}

// Choices exchanges the colors and keys of all ranks, a context for communicators of the
// kind of c, and the shared blocks that ranks offer (offers). The low group of an
// intercommunicator comes first. Collective over c.
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

// Lend selects the block that the new communicator uses: the one that rank offered in
// Choices. All members select the same.
func (a *Agreed) Lend(all []Choice, rank int) {
	a.giver, a.block = a.by.Ctx.Members.At(rank), blockIn(all[rank].offer)
}

// exchange returns the arguments of a collective call with words, which is a part of op.
func (c *Comm) exchange(op fault.Call, user context.Context, kind collectives.Op) engine.CollArgs {
	a := engine.CollArgs{Op: op, User: user}
	a.Args, a.Unit = c.args(kind), dtype.Word.Size
	return a
}

// telling returns the arguments of a broadcast from rank root.
func (c *Comm) telling(op fault.Call, user context.Context, root int, b buffer.Buf) engine.CollArgs {
	a := c.exchange(op, user, collectives.OpBcast)
	a.Out, a.Unit = b, b.Type.Size
	a.Args.Root, a.Args.Count = root, b.Count()
	return a
}
