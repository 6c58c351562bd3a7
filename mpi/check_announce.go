// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"gompi/collectives"
	"gompi/internal/buffer"
	"gompi/internal/engine"
	"gompi/internal/fault"
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
	u, _ := c.meeting()
	n := u.core.Size
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
	x.Op, x.User, x.Unit = a.Op, c.user, 1
	x.Args = collectives.Args{Op: collectives.OpAlltoall, Rank: u.core.Rank, Size: n, Count: callBytes}
	x.In, x.Out = buffer.Of(x.mine), buffer.Of(x.all)
	u.core.Choose(&x.CollArgs)
	return x
}

// announce starts to tell the other ranks. The exchange and the call have their
// numbers afterwards, whether or not the call will be made.
func (c *Comm) announce(a *engine.CollArgs, why error) *announcement {
	x := c.announcing(a, why)
	x.told = c.core.Engine.Icollective(x.u.core.Ctx, &x.CollArgs)
	x.tag = c.core.Ctx.NumberColl()
	return x
}

// call is what a rank of u told.
func (x *announcement) call(r int) []byte { return x.all[r*callBytes:][:callBytes] }

// takesPart reports whether data may go to or come from a rank of u.
func (x *announcement) takesPart(r int) bool { return x.call(r)[callPart] != noPart }

// mismatch is an error that has to do with a rank of u.
func (x *announcement) mismatch(r int, format string, args ...any) error {
	peer := r
	if x.u != x.c {
		if peer -= x.c.firstTarget(); peer < 0 || peer >= x.c.core.Targets {
			peer = ProcNull
		}
	}
	return x.c.argError(ErrMismatch, x.Op, peer, -1, -1, -1, "", fmt.Errorf(format, args...))
}

// clash is that two ranks of u make calls that do not go together.
func (x *announcement) clash(r, s int) error {
	return x.mismatch(r, "%s calls %s, %s calls %s", x.c.who(r), wordsOf(x.call(r)), x.c.who(s), wordsOf(x.call(s)))
}

// disagree finds the first rank whose call does not go together with that of
// the first rank that takes part, which is the same on all ranks, or else the
// first that does not exchange with this rank what this rank does with it.
func (x *announcement) disagree() error {
	n, self, c := x.u.core.Size, x.u.core.Rank, x.c
	first := 0
	for first < n-1 && !x.takesPart(first) {
		first++
	}
	f := x.call(first)
	root := int(binary.LittleEndian.Uint32(f[callRoot:]))
	for r := range n {
		d, own := x.call(r), x.firstOfGroup(r)
		switch {
		case !bytes.Equal(d[:callPart], f[:callPart]):
			return x.clash(r, first)
		case !bytes.Equal(d[callOwn:callTo], x.call(own)[callOwn:callTo]):
			return x.clash(r, own)
		case !x.takesPart(first): // nobody does
		case x.takesPart(r) && !bytes.Equal(d[callPart:callOwn], f[callPart:callOwn]):
			return x.clash(r, first)
		case !x.takesPart(r) && (r == root || own != x.firstOfGroup(root)):
			return x.clash(r, first)
		}
	}
	for r := range n {
		mine, theirs := x.mine[r*callBytes:], x.call(r)
		if s, e := trafficAt(theirs[callTo:]), trafficAt(mine[callFrom:]); s != e {
			return x.mismatch(r, "%s sends %v to %s, which expects %v", c.who(r), s, c.who(self), e)
		}
		if s, e := trafficAt(mine[callTo:]), trafficAt(theirs[callFrom:]); s != e {
			return x.mismatch(r, "%s sends %v to %s, which expects %v", c.who(self), s, c.who(r), e)
		}
	}
	return nil
}

// firstOfGroup is the first rank of u that is in the group of rank r.
func (x *announcement) firstOfGroup(r int) int {
	if n := x.c.lowSize(); r >= n {
		return n
	}
	return 0
}

func wordsOf(d []byte) string { return fmt.Sprintf("%q", bytes.TrimRight(d[callText:], "\x00")) }

// agree fails if the ranks do not make the same call. It waits for them.
func (k *checker) agree(c *Comm, a *engine.CollArgs) (engine.CollTag, error) {
	x := c.announcing(a, nil)
	f := c.core.Engine.Collective(x.u.core.Ctx, &x.CollArgs)
	if f != nil && f.Class == fault.Overlap {
		return 0, c.errorOf(a.Op, ProcNull, -1, f)
	}
	tag := c.core.Ctx.NumberColl()
	if f != nil {
		c.shareFate()
		return 0, c.errorOf(a.Op, ProcNull, -1, x.ours(f))
	}
	return tag, x.disagree()
}

// ours is a fault of the exchange as one of the call.
func (x *announcement) ours(f *fault.Fault) *fault.Fault {
	if x.u == x.c || f == nil {
		return f
	}
	g := *f
	if r := int(f.Peer); r >= 0 {
		if g.Peer = int32(r - x.c.firstTarget()); g.Peer < 0 || int(g.Peer) >= x.c.core.Targets {
			g.Peer, g.Local = int32(r-x.firstOfGroup(r)), true
		}
	}
	return &g
}

// sameGroup fails on a member of g, given to Create, if another member gives
// another group.
func (k *checker) sameGroup(c *Comm, g Group) error {
	h := fnv.New64a()
	for _, p := range g.members.All() {
		binary.Write(h, binary.LittleEndian, p)
	}
	mine, all := []uint64{h.Sum64()}, make([]uint64, c.core.Size)
	if err := new(call).allgather(c, BufOf(mine), BufOf(all)).as(opCreate).run(); err != nil || g.rankOf(c.core.proc) == Undefined {
		return err
	}
	for r, theirs := range all {
		if theirs != mine[0] && g.members.Index(c.core.Ctx.Members.At(r)) >= 0 {
			return c.argError(ErrMismatch, opCreate, r, -1, -1, -1, "", fmt.Errorf("rank %d is in the group, but gives another one", r))
		}
	}
	return nil
}
