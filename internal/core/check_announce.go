// SPDX-License-Identifier: Apache-2.0

package core

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"gompi/collectives"
	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine"
)

// announcement is the exchange of descriptions in front of a call.
type announcement struct {
	engine.CollArgs        // of the exchange
	c               *Comm  // of the call
	u               *Comm  // of the exchange
	mine, all       []byte // what each rank of u is told, and tells
	told            engine.Handle
	tag             engine.CollTag // the number of the call itself
}

// announcing prepares to tell the other ranks what is called here; why is an
// error that keeps this rank from the call.
func (c *Comm) announcing(a *engine.CollArgs, why error) *announcement {
	u := c.whole()
	n := u.Size
	one := make([]byte, callBytes)
	to, from := make([]traffic, n), make([]traffic, n)
	if why != nil {
		one[callPart] = badCall
		copy(one[callText:], fmt.Sprintf("%s, which fails there: %v", a.Op, why))
	} else {
		c.describe(a, one)
		exchanged(a, to[c.firstTarget():], from[c.firstTarget():])
	}
	x := &announcement{c: c, u: u, mine: bytes.Repeat(one, n), all: make([]byte, n*callBytes)}
	for r := range n {
		d := x.mine[r*callBytes:]
		to[r].put(d[callTo:])
		from[r].put(d[callFrom:])
	}
	x.Op, x.User, x.Unit = a.Op, a.User, 1
	x.Args = collectives.Args{Op: collectives.OpAlltoall, Rank: u.Rank, Size: n, Count: callBytes}
	x.In, x.Out = buffer.Of(x.mine), buffer.Of(x.all)
	u.choose(&x.CollArgs)
	return x
}

// announce starts to tell the other ranks. The exchange and the call have their
// numbers afterwards, whether or not the call will be made.
func (c *Comm) announce(a *engine.CollArgs, why error) *announcement {
	x := c.announcing(a, why)
	x.told = c.Engine.Icollective(x.u.Ctx, &x.CollArgs)
	x.tag = c.Ctx.NumberColl()
	return x
}

// call is what a rank of u told.
func (x *announcement) call(r int) []byte { return x.all[r*callBytes:][:callBytes] }

// takesPart reports whether data may go to or come from a rank of u.
func (x *announcement) takesPart(r int) bool { return x.call(r)[callPart] != noPart }

// mismatch is an error that has to do with a rank of u.
func (x *announcement) mismatch(r int, format string, args ...any) *fault.Fault {
	peer := r
	if x.u != x.c {
		if peer -= x.c.firstTarget(); peer < 0 || peer >= x.c.Targets {
			peer = -1
		}
	}
	f := wrong(fault.Mismatch, format, args...)
	f.Peer = int32(peer)
	return f
}

// clash is that two ranks of u make calls that do not go together.
func (x *announcement) clash(r, s int) *fault.Fault {
	return x.mismatch(r, "%s calls %s, %s calls %s", x.c.MemberName(r), wordsOf(x.call(r)), x.c.MemberName(s), wordsOf(x.call(s)))
}

// disagree finds the first rank whose call does not go together with that of
// the first rank that takes part, which is the same on all ranks, or else the
// first that does not exchange with this rank what this rank does with it.
func (x *announcement) disagree() *fault.Fault {
	n, self, c := x.u.Size, x.u.Rank, x.c
	first := 0
	for first < n-1 && !x.takesPart(first) {
		first++
	}
	f := x.call(first)
	root := int(binary.LittleEndian.Uint32(f[callRoot:]))
	for r := range n {
		d, own := x.call(r), c.firstOfGroup(r)
		switch {
		case !bytes.Equal(d[:callPart], f[:callPart]):
			return x.clash(r, first)
		case !bytes.Equal(d[callOwn:callTo], x.call(own)[callOwn:callTo]):
			return x.clash(r, own)
		case !x.takesPart(first): // nobody does
		case x.takesPart(r) && !bytes.Equal(d[callPart:callOwn], f[callPart:callOwn]):
			return x.clash(r, first)
		case !x.takesPart(r) && (r == root || own != c.firstOfGroup(root)):
			return x.clash(r, first)
		}
	}
	for r := range n {
		mine, theirs := x.mine[r*callBytes:], x.call(r)
		if s, e := trafficAt(theirs[callTo:]), trafficAt(mine[callFrom:]); s != e {
			return x.mismatch(r, "%s sends %v to %s, which expects %v", c.MemberName(r), s, c.MemberName(self), e)
		}
		if s, e := trafficAt(mine[callTo:]), trafficAt(theirs[callFrom:]); s != e {
			return x.mismatch(r, "%s sends %v to %s, which expects %v", c.MemberName(self), s, c.MemberName(r), e)
		}
	}
	return nil
}

func wordsOf(d []byte) string { return fmt.Sprintf("%q", bytes.TrimRight(d[callText:], "\x00")) }

// agree fails if the ranks do not make the same call. It waits for them.
func (k *Checker) agree(c *Comm, a *engine.CollArgs) (engine.CollTag, *fault.Fault) {
	x := c.announcing(a, nil)
	f := c.Engine.Collective(x.u.Ctx, &x.CollArgs)
	if f != nil && f.Class == fault.Overlap {
		return 0, f
	}
	tag := c.Ctx.NumberColl()
	if f != nil {
		return 0, c.fromWhole(f)
	}
	return tag, x.disagree()
}

// SameGroup fails on a member of g, the group of a communicator to be made by
// op, if another member gives another group. Collective over c; nil without a
// Checker, and of an intercommunicator, whose ranks have exchanged theirs.
func (c *Comm) SameGroup(op fault.Call, user context.Context, g wire.Members) *fault.Fault {
	if c.Check == nil || c.Both != nil {
		return nil
	}
	h := fnv.New64a()
	for _, p := range g.All() {
		binary.Write(h, binary.LittleEndian, p)
	}
	mine := h.Sum(nil)
	all := make([]byte, len(mine)*c.Size)
	if f := c.allgather(op, user, mine, all); f != nil || g.Index(c.Proc.Self) < 0 {
		return f
	}
	for r := range c.Size {
		if !bytes.Equal(all[r*len(mine):][:len(mine)], mine) && g.Index(c.Ctx.Members.At(r)) >= 0 {
			f := wrong(fault.Mismatch, "rank %d is in the group, but gives another one", r)
			f.Peer = int32(r)
			return f
		}
	}
	return nil
}
