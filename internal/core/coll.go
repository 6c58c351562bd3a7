// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"fmt"

	"gompi/collectives"
	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/data/dtype"
	"gompi/internal/engine"
)

// Run makes a blocking collective call.
func (c *Comm) Run(a *engine.CollArgs) *fault.Fault {
	if a.User != nil && a.User.Err() != nil {
		return c.refuse(a, lapsed(a.User))
	}
	if c.checked {
		if c.Check == nil {
			return c.Proc.calls.run(c, a)
		}
		return c.Check.run(c, a)
	}
	c.chooseBlocking(a)
	return c.Engine.Collective(c.Ctx, a)
}

// runOn is Run for a later exchange of one call. Other ranks may have left this exchange when
// a rank gives up, so giving up revokes the communicator.
func (c *Comm) runOn(a *engine.CollArgs) *fault.Fault {
	f := c.Run(a)
	if f != nil && f.Class == fault.Cancelled {
		c.Engine.Revoke(c.Ctx)
	}
	return f
}

// Start starts a collective call, or returns why it cannot.
func (c *Comm) Start(a *engine.CollArgs) (engine.Handle, *fault.Fault) {
	if a.User != nil && a.User.Err() != nil {
		return engine.Handle{}, c.refuse(a, lapsed(a.User))
	}
	if c.checked {
		if c.Check == nil {
			return c.Proc.calls.start(c, a)
		}
		return c.Check.start(c, a)
	}
	c.chooseStarted(a)
	return c.Engine.Icollective(c.Ctx, a), nil
}

// Prepare numbers a persistent collective and chooses its algorithm. why is the error of its
// arguments, or nil. It numbers also a wrong call, since the other ranks do.
func (c *Comm) Prepare(a *engine.CollArgs, why error) *fault.Fault {
	var f *fault.Fault
	if a.Tag, f = c.numberPersistent(a.Op); a.Tag == 0 {
		return f
	}
	if k := c.Check; k != nil {
		if why == nil && f == nil {
			f = apart(a)
		}
		if why == nil && f == nil {
			_, f = k.agree(c, a)
		} else {
			c.Refuse(a, cause(why, f))
		}
	}
	if t := c.Proc.calls; why == nil && f == nil && t != nil {
		f = t.compare(c, a, int64(a.Tag), true)
	}
	if why == nil && f == nil {
		c.chooseStarted(a)
	}
	return f
}

// placeRounds is how often an Init agrees on free places before it fails.
const placeRounds = engine.PersistentSections

// numberPersistent numbers a persistent collective. Numbers come from places that are used
// again: when they run out, all ranks exchange which of their operations are not freed.
func (c *Comm) numberPersistent(op fault.Call) (engine.CollTag, *fault.Fault) {
	for range placeRounds + 1 {
		if tag := c.Ctx.NumberPersistent(); tag != 0 {
			return tag, nil
		}
		mine := c.Ctx.PersistentPlaces()
		u := c.whole()
		all := make([]uint64, len(mine)*u.Size)
		a := engine.CollArgs{Op: op}
		a.Args, a.In, a.Out, a.Unit = u.args(collectives.OpAllgather), buffer.Words(mine), buffer.Words(all), 8
		a.Args.Count = int64(len(mine))
		if f := u.Run(&a); f != nil {
			return 0, c.fromWhole(f)
		}
		c.Ctx.AgreePlaces(all)
	}
	return 0, wrong(fault.Arg, "%d persistent collectives of the communicator are not freed: use Dup", engine.MaxPersistent)
}

// Refuse tells the other ranks that this one cannot make a collective call, so that their
// calls end. It does not wait.
func (c *Comm) Refuse(a *engine.CollArgs, why error) {
	if c.Check == nil {
		c.Engine.Refuse(c.Ctx, a)
		return
	}
	x := c.announce(a, why)
	c.Engine.Forget(x.told)
	c.Engine.Refuse(c.Ctx, &engine.CollArgs{Tag: x.tag})
}

// refuse is Refuse, and returns f.
func (c *Comm) refuse(a *engine.CollArgs, f *fault.Fault) *fault.Fault {
	c.Refuse(a, cause(nil, f))
	return f
}

// lapsed is the fault of a call whose context had ended before it began.
func lapsed(user context.Context) *fault.Fault {
	return &fault.Fault{Class: fault.Cancelled, Peer: -1, Err: context.Cause(user)}
}

// wrong returns a fault without numbers.
func wrong(class fault.Class, format string, args ...any) *fault.Fault {
	return &fault.Fault{Class: class, Got: -1, Want: -1, Peer: -1, Err: fmt.Errorf(format, args...)}
}

// cause returns why, or f as an error if why is nil.
func cause(why error, f *fault.Fault) error {
	switch {
	case why != nil || f == nil:
		return why
	case f.Err == nil:
		return f.Class
	}
	return fmt.Errorf("%w: %w", f.Class, f.Err)
}

// choose selects the algorithm of a call.
func (c *Comm) choose(a *engine.CollArgs) {
	a.Alg = c.Table.Select(&a.Args, int(a.Unit), a.Commutative)
}

// chooseBlocking is choose for a blocking call. Blocking calls come in one order, so ranks
// on one host may use their collective buffer. The w-forms have many buffers and do not.
func (c *Comm) chooseBlocking(a *engine.CollArgs) {
	if a.Table = c.Table; a.InBlocks == nil {
		c.share(&a.Args, a.Unit)
	}
	c.choose(a)
}

// chooseStarted is choose for a nonblocking call. Some of them may use the collective
// buffer, too.
func (c *Comm) chooseStarted(a *engine.CollArgs) {
	if room := c.Ctx.RingRoom(a.Args.Op); room > 0 {
		a.Table, a.Args.Shared = c.Table, dtype.Quo(room, max(1, a.Unit))
	}
	c.choose(a)
}

// share tells selection how much the collective buffer of the ranks holds, if they are on
// one host.
func (c *Comm) share(a *collectives.Args, unit int64) {
	if c.Nodes == nil || c.teams {
		a.Shared, a.Reads = dtype.Quo(c.Ctx.SharedRoom(), max(1, unit)), c.Ctx.Reads()
	}
}

// args returns the arguments that all calls of a collective operation have in common.
func (c *Comm) args(op collectives.Op) collectives.Args {
	return collectives.Args{Op: op, Rank: c.Rank, Size: c.Size, Remote: c.Ctx.Remote.Len(), Nodes: c.Nodes}
}

// SelectionArgs returns the arguments by which an algorithm for a blocking call of op is
// selected, without lengths; elements have elemBytes bytes.
func (c *Comm) SelectionArgs(op collectives.Op, elemBytes int64) collectives.Args {
	a := c.args(op)
	c.share(&a, elemBytes)
	return a
}

// allgather gives every rank the bytes mine of each of them.
func (c *Comm) allgather(op fault.Call, user context.Context, mine, all []byte) *fault.Fault {
	a := engine.CollArgs{Op: op, User: user}
	a.Args, a.In, a.Out, a.Unit = c.args(collectives.OpAllgather), buffer.Of(mine), buffer.Of(all), 1
	a.Args.Count = int64(len(mine))
	return c.Run(&a)
}
