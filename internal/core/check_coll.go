// SPDX-License-Identifier: Apache-2.0

package core

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
	"gompi/internal/engine"
)

// With GOMPI_CHECK=1 each rank tells each other rank what it calls before a
// collective starts: what must be equal, what is exchanged with that rank, and
// words for people. The ranks of an intercommunicator, of both groups, do so in
// its hidden communicator, whose ranks stand in keys and lists.
//
//	0    name: equal on all ranks
//	16   part: equal on all ranks that have one
//	48   own: equal on all ranks of a group
//	56   bytes and messages to the other rank
//	72   bytes and messages from the other rank
//	88   words
const (
	callPart  = 16
	callRoot  = callPart + 4
	callOwn   = callPart + 32
	callTo    = callOwn + 8
	callFrom  = callTo + 16
	callText  = callFrom + 16
	callBytes = callText + 144
)

// What stands in a part for the kind of element.
const (
	badCall = 255 // the call fails
	noPart  = 254 // the root is another rank of the group
)

const _ = noPart - 1 - uint(dtype.NumKinds)

// elements describes the basic elements of a call: words, kind and size.
func elements(a *engine.CollArgs) (name string, kind dtype.Kind) {
	t := a.Out.Type
	if in := a.In.Type; t == nil || in != nil && in.Size > 0 && (t.Size == 0 || a.Out.Bytes() == 0 && a.In.Bytes() > 0) {
		t = in
	}
	if t == nil {
		return "", dtype.Opaque
	}
	if t = t.Base(); t == nil {
		return "bytes", dtype.Opaque
	}
	return t.Name, t.Kind
}

// describe writes all but the traffic of a call.
func (c *Comm) describe(a *engine.CollArgs, d []byte) {
	x := &a.Args
	elem, kind := elements(a)
	words, count, unit := string(a.Op), x.Count, a.Unit
	nothing := a.In.Bytes()+a.Out.Bytes() == 0
	switch x.Op {
	case collectives.OpBarrier:
	case collectives.OpAllgatherv, collectives.OpReduceScatter:
		words += fmt.Sprintf(" of %v %s", x.Counts, elem)
		count = 0
	case collectives.OpGatherv, collectives.OpScatterv, collectives.OpAlltoallv, collectives.OpNeighborAllgatherv, collectives.OpNeighborAlltoallv:
		words += " of " + elem
		count = 0
		if !hasElements(a) { // those of the others go with every type
			kind = noPart
		}
	default:
		words += fmt.Sprintf(" of %d %s", x.Count, elem)
		switch near := x.Op >= collectives.OpNeighborAllgather; {
		case near:
			if count = 0; !hasElements(a) {
				kind = noPart
			}
		case nothing: // whatever the type is of which there is none
			kind, unit = dtype.Opaque, 1
		}
	}
	root := 0
	if to := direction(x.Op); to != "" {
		root = c.rootOf(x)
		switch {
		case root < 0:
			words, kind = string(a.Op)+" with ProcNull", noPart
		case x.Remote > 0 && !x.RootRemote:
			words += " as root"
		default:
			words += fmt.Sprintf(" %s root %d", to, x.Root)
		}
	}
	reduction := reductionOf(a)
	if reduction != "" {
		words += " with " + reduction
	}
	if a.Tag != 0 {
		words = "persistent " + words
	}
	own := fnv.New64a()
	if x.Remote > 0 {
		count = total(x)
		if x.Op == collectives.OpReduceScatterBlock {
			binary.Write(own, binary.LittleEndian, x.Count)
		}
	}
	if x.Op == collectives.OpReduceScatter || x.Op == collectives.OpAllgatherv {
		binary.Write(own, binary.LittleEndian, x.Counts)
	}
	b := binary.LittleEndian.AppendUint64(d[:0], hashOf(string(a.Op)))
	binary.LittleEndian.AppendUint64(b, uint64(x.Op)<<1|uint64(min(a.Tag, 1)))
	b = append(d[:callPart], byte(kind), 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(root))
	b = binary.LittleEndian.AppendUint64(b, uint64(count))
	b = binary.LittleEndian.AppendUint64(b, uint64(unit))
	b = binary.LittleEndian.AppendUint64(b, hashOf(reduction))
	binary.LittleEndian.AppendUint64(b, own.Sum64())
	copy(d[callText:], words)
}

// hasElements reports whether a type of the call has elements with bytes.
func hasElements(a *engine.CollArgs) bool {
	for _, t := range [...]*dtype.Type{a.In.Type, a.Out.Type} {
		if t != nil && t.Size > 0 {
			return true
		}
	}
	return a.In.Type == nil && a.Out.Type == nil
}

// reductionOf is the reduction of a call, on which ranks must agree, and on whether it
// commutes: that decides between algorithms. "": there is none.
func reductionOf(a *engine.CollArgs) string {
	switch {
	case a.Kernel == nil:
		return ""
	case !a.Commutative:
		return a.KernelName + ", not commutative"
	}
	return a.KernelName
}

func hashOf(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// total is how much of a call between two groups both agree on.
func total(x *collectives.Args) int64 {
	switch x.Op {
	case collectives.OpBcast, collectives.OpGather, collectives.OpScatter, collectives.OpReduce, collectives.OpAllreduce:
		return x.Count
	case collectives.OpReduceScatterBlock:
		return x.Count * int64(x.Size)
	case collectives.OpReduceScatter:
		n := int64(0)
		for _, k := range x.Counts {
			n += k
		}
		return n
	}
	return 0
}

// direction says whether the data of an operation comes from a root or goes to
// one; "" if it has none.
func direction(op collectives.Op) string {
	switch op {
	case collectives.OpBcast, collectives.OpScatter, collectives.OpScatterv:
		return "from"
	case collectives.OpGather, collectives.OpGatherv, collectives.OpReduce:
		return "to"
	}
	return ""
}

// rootOf is the root among all who make a call, -1 on a rank whose group has it
// elsewhere.
func (c *Comm) rootOf(x *collectives.Args) int {
	switch {
	case x.RootRemote:
		return c.firstTarget() + x.Root
	case x.Remote > 0 && x.Root >= 0:
		u := c.whole()
		return u.Rank
	}
	return x.Root
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

// exchanged tells what a call sends to each rank that messages go to, and
// receives from it.
func exchanged(a *engine.CollArgs, to, from []traffic) {
	x := &a.Args
	add := func(f []traffic, rank int, count int64) {
		if rank >= 0 {
			f[rank].bytes += count * a.Unit
			f[rank].messages++
		}
	}
	root := func(all, own []traffic) {
		if x.Remote == 0 || x.RootRemote {
			add(own, x.Root, x.Count)
		}
		for r, n := range x.Counts { // at the root
			add(all, r, n)
		}
	}
	switch x.Op {
	case collectives.OpAllgather, collectives.OpAlltoall:
		for r := range x.Remote {
			add(to, r, x.Count)
			add(from, r, x.RemoteCount)
		}
	case collectives.OpAllgatherv:
		for r := range x.Remote {
			add(to, r, x.Count)
			add(from, r, x.Counts[r])
		}
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

// run is Comm.Run with all checks.
func (k *Checker) run(c *Comm, a *engine.CollArgs) *fault.Fault {
	u, f := k.bookColl(c, a)
	if f != nil {
		return c.refuse(a, f)
	}
	defer k.End(u)
	if a.Tag, f = k.agree(c, a); f != nil {
		return k.giveUp(c, a, f)
	}
	c.chooseBlocking(a)
	return c.Engine.Collective(c.Ctx, a)
}

// giveUp ends a call that has its number and will not be made: ranks that see
// no disagreement hear of it.
func (k *Checker) giveUp(c *Comm, a *engine.CollArgs, f *fault.Fault) *fault.Fault {
	if a.Tag != 0 {
		c.Engine.Refuse(c.Ctx, a)
	}
	return f
}

// start is Comm.Start with all checks. It must not wait for the others, so
// the call starts on a goroutine of its own when the ranks have been found to
// agree.
func (k *Checker) start(c *Comm, a *engine.CollArgs) (engine.Handle, *fault.Fault) {
	e, ctx := c.Engine, c.Ctx
	u, f := k.bookColl(c, a)
	if f != nil {
		return engine.Handle{}, c.refuse(a, f)
	}
	x := c.announce(a, nil)
	call := *a
	call.Tag = x.tag
	u.hash()
	u.LandColl(&call)
	c.choose(&call)
	h := e.NewOther(ctx, a.Op, buffer.Buf{})
	u.watch(h)
	k.Until(u, h)
	go func() {
		o := e.Wait(x.told)
		if o.Status.Fault = c.byGroup(o.Status.Fault); o.Status.Fault == nil {
			if f := x.disagree(); f != nil {
				o.Status.Fault = k.giveUp(c, &call, f)
			} else {
				o = e.Wait(e.Icollective(ctx, &call))
			}
		}
		e.Complete(h, o.Status)
		c.followRevoke()
	}()
	return h, nil
}
