// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"gompi/collectives"
	"gompi/internal/dtype"
	"gompi/internal/engine"
)

// With GOMPI_CHECK=1 each rank tells each other rank what it calls before a
// collective starts: what must be equal, what is exchanged with that rank, and
// words for people.
//
//	0    key: equal on all ranks
//	40   bytes and messages to the other rank
//	56   bytes and messages from the other rank
//	72   words
const (
	callKey   = 40
	callTo    = callKey
	callFrom  = callTo + 16
	callText  = callFrom + 16
	callBytes = callText + 144
)

// badCall stands in a key for the kind of element.
const badCall = 255

const _ = badCall - 1 - uint(dtype.NumKinds)

// elements describes the basic elements of a call: words, kind and size.
func elements(a *engine.CollArgs) (name string, kind dtype.Kind) {
	t := a.Out.Type
	if t == nil {
		t = a.In.Type
	}
	if t == nil {
		return "", dtype.Opaque
	}
	if t = t.Base(); t == nil {
		return "bytes", dtype.Opaque
	}
	return t.Name, t.Kind
}

// describe writes the key and the words of a call.
func describe(a *engine.CollArgs, d []byte) {
	x := &a.Args
	elem, kind := elements(a)
	words, count := string(a.Op), x.Count
	switch x.Op {
	case collectives.OpBarrier:
	case collectives.OpAllgatherv, collectives.OpReduceScatter:
		words += fmt.Sprintf(" of %v %s", x.Counts, elem)
		count = 0
	case collectives.OpGatherv, collectives.OpScatterv, collectives.OpAlltoallv, collectives.OpNeighborAllgatherv, collectives.OpNeighborAlltoallv:
		words += " of " + elem
		count = 0
	default:
		words += fmt.Sprintf(" of %d %s", x.Count, elem)
		if x.Op >= collectives.OpNeighborAllgather {
			count = 0
		}
	}
	switch x.Op {
	case collectives.OpBcast, collectives.OpScatter, collectives.OpScatterv:
		words += fmt.Sprintf(" from root %d", x.Root)
	case collectives.OpGather, collectives.OpGatherv, collectives.OpReduce:
		words += fmt.Sprintf(" to root %d", x.Root)
	}
	if a.Kernel != nil {
		words += " with " + a.KernelName
	}
	if a.Tag != 0 {
		words = "persistent " + words
	}
	hash := fnv.New64a()
	hash.Write([]byte(a.Op))
	hash.Write([]byte(a.KernelName))
	if x.Op == collectives.OpAllgatherv || x.Op == collectives.OpReduceScatter {
		for _, n := range x.Counts {
			binary.Write(hash, binary.LittleEndian, n)
		}
	}
	key := append(d[:0], byte(x.Op), byte(kind))
	key = binary.LittleEndian.AppendUint16(key, uint16(min(a.Tag, 1)))
	key = binary.LittleEndian.AppendUint32(key, uint32(x.Root))
	key = binary.LittleEndian.AppendUint64(key, uint64(count))
	key = binary.LittleEndian.AppendUint64(key, uint64(a.Unit))
	binary.LittleEndian.AppendUint64(key, hash.Sum64())
	copy(d[callText:], words)
}

// traffic is what a pair of ranks exchanges one way in a call whose counts are
// not equal on all ranks.
type traffic struct{ bytes, messages int64 }

func (f traffic) put(d []byte) {
	binary.LittleEndian.PutUint64(d, uint64(f.bytes))
	binary.LittleEndian.PutUint64(d[8:], uint64(f.messages))
}

func trafficAt(d []byte) traffic {
	return traffic{int64(binary.LittleEndian.Uint64(d)), int64(binary.LittleEndian.Uint64(d[8:]))}
}

func (f traffic) String() string { return fmt.Sprintf("%d bytes in %d blocks", f.bytes, f.messages) }

// exchanged tells what a call sends to each rank and receives from it.
func exchanged(a *engine.CollArgs, to, from []traffic) {
	x := &a.Args
	add := func(f []traffic, rank int, count int64) {
		if rank >= 0 {
			f[rank].bytes += count * a.Unit
			f[rank].messages++
		}
	}
	root := func(all, own []traffic) {
		add(own, x.Root, x.Count)
		for r, n := range x.Counts { // at the root
			add(all, r, n)
		}
	}
	switch x.Op {
	case collectives.OpGatherv:
		root(from, to)
	case collectives.OpScatterv:
		root(to, from)
	case collectives.OpAlltoallv:
		for r := range x.InCounts {
			add(to, r, x.InCounts[r])
			add(from, r, x.OutCounts[r])
		}
	case collectives.OpNeighborAllgather, collectives.OpNeighborAllgatherv, collectives.OpNeighborAlltoall, collectives.OpNeighborAlltoallv:
		for i, r := range x.Dests {
			if x.Op == collectives.OpNeighborAlltoallv {
				add(to, int(r), x.InCounts[i])
			} else {
				add(to, int(r), x.Count)
			}
		}
		for i, r := range x.Sources {
			if x.OutCounts != nil {
				add(from, int(r), x.OutCounts[i])
			} else {
				add(from, int(r), x.Count)
			}
		}
	}
}

// announcement is the exchange of descriptions in front of a call.
type announcement struct {
	engine.CollArgs        // of the exchange
	mine, all       []byte // what each rank is told, and tells
	told            engine.Handle
	tag             engine.CollTag // the number of the call itself
}

// announcing prepares to tell the other ranks what is called here; why is an
// error that keeps this rank from the call.
func (c *Comm) announcing(a *engine.CollArgs, why error) *announcement {
	n := c.core.size
	one := make([]byte, callBytes)
	to, from := make([]traffic, n), make([]traffic, n)
	if why != nil {
		one[1] = badCall
		copy(one[callText:], fmt.Sprintf("%s, which fails there: %v", a.Op, why))
	} else {
		describe(a, one)
		exchanged(a, to, from)
	}
	x := &announcement{mine: bytes.Repeat(one, n), all: make([]byte, n*callBytes)}
	for r := range n {
		d := x.mine[r*callBytes:]
		to[r].put(d[callTo:])
		from[r].put(d[callFrom:])
	}
	x.Op, x.User, x.Unit = a.Op, c.user, 1
	x.Args = collectives.Args{Op: collectives.OpAlltoall, Rank: c.core.rank, Size: n, Count: callBytes}
	x.In, x.Out = engine.ByteBuf(x.mine), engine.ByteBuf(x.all)
	c.choose(&x.CollArgs)
	return x
}

// announce starts to tell the other ranks. The exchange and the call have their
// numbers afterwards, whether or not the call will be made.
func (c *Comm) announce(a *engine.CollArgs, why error) *announcement {
	x := c.announcing(a, why)
	x.told = c.core.e.Icollective(c.core.ctx, &x.CollArgs)
	x.tag = c.core.ctx.NumberColl()
	return x
}

// disagree finds the first rank whose call is not that of rank 0, which is the
// same on all ranks, or else the first that does not exchange with this rank
// what this rank does with it.
func (x *announcement) disagree(c *Comm, op engine.Op) error {
	mismatch := func(r int, format string, args ...any) error {
		return c.argError(ErrMismatch, op, r, -1, -1, -1, "", fmt.Errorf(format, args...))
	}
	first := x.all[:callBytes]
	for r := 1; r < c.core.size; r++ {
		d := x.all[r*callBytes:][:callBytes]
		if !bytes.Equal(d[:callKey], first[:callKey]) {
			return mismatch(r, "rank %d calls %s, rank 0 calls %s", r, wordsOf(d), wordsOf(first))
		}
	}
	for r := range c.core.size {
		mine, theirs := x.mine[r*callBytes:], x.all[r*callBytes:]
		if s, e := trafficAt(theirs[callTo:]), trafficAt(mine[callFrom:]); s != e {
			return mismatch(r, "rank %d sends %v to rank %d, which expects %v", r, s, c.core.rank, e)
		}
		if s, e := trafficAt(mine[callTo:]), trafficAt(theirs[callFrom:]); s != e {
			return mismatch(r, "rank %d sends %v to rank %d, which expects %v", c.core.rank, s, r, e)
		}
	}
	return nil
}

func wordsOf(d []byte) string { return fmt.Sprintf("%q", bytes.TrimRight(d[callText:], "\x00")) }

// agree fails if the ranks do not make the same call. It waits for them. The
// calls of two groups are not compared.
func (k *checker) agree(c *Comm, a *engine.CollArgs) (engine.CollTag, error) {
	if c.IsInter() {
		return 0, nil
	}
	x := c.announcing(a, nil)
	f := c.core.e.Collective(c.core.ctx, &x.CollArgs)
	if f != nil && f.Class == engine.Overlap {
		return 0, c.errorOf(a.Op, ProcNull, -1, f)
	}
	tag := c.core.ctx.NumberColl()
	if f != nil {
		return 0, c.errorOf(a.Op, ProcNull, -1, f)
	}
	return tag, x.disagree(c, a.Op)
}

// sameGroup fails on a member of g, given to Create, if another member gives
// another group.
func (k *checker) sameGroup(c *Comm, g Group) error {
	h := fnv.New64a()
	for _, p := range g.members.All() {
		binary.Write(h, binary.LittleEndian, p)
	}
	mine, all := []uint64{h.Sum64()}, make([]uint64, c.core.size)
	if err := new(call).allgather(c, BufOf(mine), BufOf(all)).as(opCreate).run(); err != nil || g.Rank() == Undefined {
		return err
	}
	for r, theirs := range all {
		if theirs != mine[0] && g.members.Index(c.core.ctx.Members.At(r)) >= 0 {
			return c.argError(ErrMismatch, opCreate, r, -1, -1, -1, "", fmt.Errorf("rank %d is in the group, but gives another one", r))
		}
	}
	return nil
}

// run is Comm.run with all checks.
func (k *checker) run(c *Comm, a *engine.CollArgs) error {
	u, err := k.begin(c, collUse(a))
	if err != nil {
		return c.refuse(a, err)
	}
	defer k.end(u)
	if a.Tag, err = k.agree(c, a); err != nil {
		return k.giveUp(c, a, err)
	}
	c.chooseBlocking(a)
	if f := c.core.e.Collective(c.core.ctx, a); f != nil {
		return c.errorOf(a.Op, ProcNull, -1, f)
	}
	return nil
}

// giveUp ends a call that has its number and will not be made: ranks that see
// no disagreement hear of it.
func (k *checker) giveUp(c *Comm, a *engine.CollArgs, err error) error {
	if a.Tag != 0 {
		c.core.e.Refuse(c.core.ctx, a)
	}
	return err
}

// start is Comm.start with all checks. It must not wait for the others, so
// the call starts on a goroutine of its own when the ranks have been found to
// agree.
func (k *checker) start(c *Comm, a *engine.CollArgs) Request {
	e, ctx := c.core.e, c.core.ctx
	u, err := k.begin(c, collUse(a))
	if err != nil {
		return c.failedRequest(a.Op, c.refuse(a, err))
	}
	if c.IsInter() {
		c.choose(a)
		h := e.Icollective(ctx, a)
		k.until(u, h)
		return Request{h}
	}
	x := c.announce(a, nil)
	call := *a
	call.Tag = x.tag
	c.choose(&call)
	h := e.NewOther(ctx, a.Op)
	k.until(u, h)
	go func() {
		o := e.Wait(x.told)
		if o.Status.Fault == nil {
			if err := x.disagree(c, call.Op); err != nil {
				o.Status.Fault = &engine.Fault{Class: engine.Argument, Peer: -1, Err: k.giveUp(c, &call, err)}
			} else {
				o = e.Wait(e.Icollective(ctx, &call))
			}
		}
		e.Complete(h, o.Status)
	}()
	return Request{h}
}
