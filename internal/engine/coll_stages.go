// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
	"gompi/internal/engine/shmcoll"
)

// hostPart is the part of a communicator of several hosts that lies on this host. It has a
// context of its own, whose id follows from the communicator's, and an area. A blocking
// two-level algorithm runs its local stages there.
//
// Programs call only the communicator; whatever ends a call there ends its stages. The
// engine's lock guards it.
type hostPart struct {
	ctx   *Context
	ranks []int32 // ranks in the communicator, by rank in ctx

	req     Request  // stands for the call while no part of it is under way
	msgs    CollArgs // of the rounds that go by messages
	inside  CollArgs // of the stage in the area
	scratch []byte   // of the whole algorithm
	packed  []byte   // contiguous copies of the strided buffers of a reduction
	bufs    [3]buffer.Buf
}

// onArea returns the algorithm for a stage inside a host, or nil if the stage goes by
// messages.
func onArea(op collectives.Op) *collectives.Algorithm {
	if op == collectives.OpBcast || op == collectives.OpReduce {
		return collectives.SharedOf(op)
	}
	return nil
}

// Divide tells the engine that the members of c are on several hosts, and which ranks are
// on this one. The caller must call it before any call on c.
func (e *Engine) Divide(c *Context, here []int32) error {
	var b wire.MembersBuilder
	for _, r := range here {
		b.Add(wire.Range{First: c.Members.At(int(r)), Count: 1})
	}
	n, err := e.newContext(c.ID.OnNode(), b.Members(), c.Owner)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dropArea(c)
	if !n.mayShare() {
		return nil
	}
	if e.contexts[n.ID] != nil {
		return fmt.Errorf("communicator %v exists already", n.ID)
	}
	n.offerArea()
	n.shareFrom, n.whole = c.shareFrom, c
	c.host = &hostPart{ctx: n, ranks: slices.Clone(here)}
	if c.faults != nil {
		n.makeFaults()
	}
	e.contexts[n.ID] = n
	n.countLost()
	e.takeNotice(n)
	return nil
}

// endNode ends the host part of a communicator that has ended.
func (e *Engine) endNode(n *Context) {
	e.dropArea(n)
	delete(e.contexts, n.ID)
	e.unhold(n)
	e.dropArrived(n.ID)
}

// takes reports whether a call may use the area. All ranks of the host get the same answer.
func (s *hostPart) takes(a *CollArgs, tag int32) bool {
	return a.Alg.Stages > 0 && s.ctx.areaState != areaNever && tag >= s.ctx.shareFrom && a.InBlocks == nil
}

// fits reports whether a stage inside the host uses the area.
func (s *hostPart) fits(a *collectives.Args, unit int64) bool {
	room := s.ctx.room.Load()
	return onArea(a.Op) != nil && room > 0 && collectives.Published(a) <= dtype.Quo(room, max(1, unit))
}

// Select makes hostPart the Selector of its own stages: they have no other choice.
func (s *hostPart) Select(*collectives.Args, int, bool) *collectives.Algorithm { return s.inside.Alg }

// staged runs a call whose algorithm consists of stages. Stages inside the host use the
// area where they fit; the rounds between hosts go by messages.
func (e *Engine) staged(c *Context, a *CollArgs, tag int32, pending bool) *fault.Fault {
	if f := c.startFault(a, tag, pending); f != nil {
		e.refuseColl(c, a, tag, f)
		return f
	}
	s := c.host
	s.begin(a)
	s.stands()
	f := e.stages(c, tag)
	if f == nil && s.bufs[collectives.Out] != a.Out {
		e.pack.copy(a.Out, s.bufs[collectives.Out])
	}
	s.end()
	a.release()
	return f
}

// stands makes c.blocking stand for the call while no part of it is under way.
func (s *hostPart) stands() {
	s.req.op = s.msgs.Op
	s.ctx.whole.blocking = &s.req
}

func (s *hostPart) begin(a *CollArgs) {
	s.msgs = *a
	s.msgs.Keep, s.msgs.Offer = nil, nil
	s.inside = s.msgs
	s.inside.Table = s
	s.bufs[collectives.In], s.bufs[collectives.Out] = a.In, a.Out
	if a.Kernel != nil && (a.In.Strided() || a.Out.Strided()) {
		// Kernels work on contiguous elements. All stages use the same copies.
		m := grown(&s.packed, a.In.Bytes()+a.Out.Bytes())
		for i, b := range s.bufs[:collectives.Scratch] {
			part := m[:b.Bytes()]
			b.Pack(part, 0)
			s.bufs[i], m = buffer.Of(part), m[b.Bytes():]
		}
		s.msgs.In, s.msgs.Out = s.bufs[collectives.In], s.bufs[collectives.Out]
	}
	s.bufs[collectives.Scratch] = buffer.Of(grown(&s.scratch, a.Alg.Scratch(&s.msgs.Args)*a.Unit))
}

// end drops what belongs to the caller.
func (s *hostPart) end() {
	s.msgs, s.inside, s.bufs = CollArgs{}, CollArgs{}, [3]buffer.Buf{}
	if cap(s.scratch) > maxKeptScratch {
		s.scratch = nil
	}
	if cap(s.packed) > maxKeptScratch {
		s.packed = nil
	}
}

// grown returns n bytes of reusable memory.
func grown(m *[]byte, n int64) []byte {
	if int64(cap(*m)) < n {
		*m = make([]byte, n)
	}
	return (*m)[:n]
}

// stages runs the stages one after the other. It passes no pointer to the caller's
// arguments: they would be on the heap in every call.
func (e *Engine) stages(c *Context, tag int32) *fault.Fault {
	s := c.host
	alg, unit, a := s.msgs.Alg, s.msgs.Unit, &s.msgs.Args
	from, to := 0, 0 // rounds to run by messages
	for i := range alg.Stages {
		call := *a
		g, at, inside := alg.Stage(a, i)
		rounds, area := 0, false
		if g != nil {
			rounds = g.Rounds(a)
			if area = inside && s.fits(a, unit); area {
				s.stage(a, &at, unit)
			}
		}
		*a = call
		if area {
			if f := e.stageMsgs(c, from, to); f != nil {
				return f
			}
			from = to
			ran, f := e.stageArea(c, tag, i)
			if f != nil {
				return f
			}
			if ran {
				from += rounds
			}
		}
		to += rounds
	}
	return e.stageMsgs(c, from, to)
}

// stage sets up the arguments of a stage over the area.
func (s *hostPart) stage(a *collectives.Args, at *[3]collectives.Ref, unit int64) {
	x := &s.inside
	x.Alg = onArea(a.Op)
	x.Args = collectives.Args{
		Op:      a.Op,
		Rank:    a.Rank,
		Size:    a.Size,
		Root:    a.Root,
		Count:   a.Count,
		InPlace: a.InPlace,
	}
	x.Args.Shared = dtype.Quo(s.ctx.room.Load(), max(1, unit))
	x.Kernel = nil
	if a.Op == collectives.OpReduce {
		x.Kernel = s.msgs.Kernel
	}
	x.In = s.part(at[collectives.In], a.InLen()*unit, unit)
	x.Out = s.part(at[collectives.Out], a.OutLen()*unit, unit)
}

// part returns n bytes of the call's buffers at a reference.
func (s *hostPart) part(at collectives.Ref, n, unit int64) buffer.Buf {
	if n == 0 {
		return buffer.Buf{}
	}
	return s.bufs[at.Buf].Part(at.Off*unit, n)
}

// stageMsgs runs some rounds by messages.
func (e *Engine) stageMsgs(c *Context, from, to int) *fault.Fault {
	if from == to {
		return nil
	}
	if f := c.givenUp; f != nil {
		e.dropTag(c, c.tag)
		return f
	}
	s := c.host
	r := e.prepareColl(c, &s.msgs, c.tag, true)
	if k := r.coll; k != nil {
		k.round, k.rounds = from, to
		k.bufs[collectives.Scratch] = s.bufs[collectives.Scratch]
		e.advance(k)
	}
	f := e.scheduled(c, r)
	s.stands()
	return f
}

// stageNumber is the number of a stage as a call on the host's context. A call has at most
// one stage before the rounds between hosts, and one after them.
func stageNumber(tag int32, stage int) int32 {
	return int32((uint32(tag)*2 + uint32(min(stage, 1))) & seqMask)
}

// stageArea runs a stage in the area. ran is false if the ranks share no memory; they find
// that out in the first stage.
func (e *Engine) stageArea(c *Context, tag int32, stage int) (ran bool, f *fault.Fault) {
	s := c.host
	n := s.ctx
	if f := c.givenUp; f != nil {
		e.dropTag(c, tag)
		return false, f
	}
	n.tag, n.givenUp = stageNumber(tag, stage), nil
	n.collSeq = uint64(n.tag) + 1
	n.forgetEarly()
	if n.areaState != areaMade {
		f = e.settleArea(n, &s.inside, n.tag)
	}
	if f == nil && n.area != nil {
		ran, f = true, e.areaColl(n, &s.inside, n.tag, true)
	}
	n.blocking = nil
	if f != nil {
		f = e.stageFault(c, tag, f)
	}
	return ran, f
}

// forgetEarly drops notices for stages that have passed.
func (c *Context) forgetEarly() {
	if t := c.faults; t != nil && len(t.early) > 0 {
		t.early = slices.DeleteFunc(t.early, func(g givenUp) bool { return shmcoll.Later(uint32(c.tag), uint32(g.to)) })
	}
}

// stageFault returns the fault of a stage as a fault of the call. It tells the ranks that
// may not learn of it otherwise.
func (e *Engine) stageFault(c *Context, tag int32, f *fault.Fault) *fault.Fault {
	e.dropTag(c, tag)
	if f.Class == fault.Cancelled {
		e.revoke(c)
		return f
	}
	if of := c.partFault(); of != nil {
		return of
	}
	if f.Peer >= 0 && int(f.Peer) < len(c.host.ranks) {
		f = faultAt(f, member(c.host.ranks[f.Peer]))
	}
	if f.Class == fault.Mismatch && f.Err != nil {
		f.Err = fmt.Errorf("the part of %s on this host: %w", c.host.msgs.Op, f.Err)
	}
	if f.Class != fault.Aborted {
		e.tell(c, kindCollFail, wire.TrafficColl, tag, culprit(f))
	}
	return f
}

// strays marks in the area that this rank makes a call by messages alone: another rank may
// wait for it there.
func (s *hostPart) strays(tag int32) {
	n := s.ctx
	if s.msgs.Alg != nil || n.area == nil {
		return
	}
	n.area.TellElsewhere(shmcoll.Seq(stageNumber(tag, 0)))
	n.area.WakeAll()
}

// partFault returns the fault that ends the call whose part is under way.
func (c *Context) partFault() *fault.Fault {
	if c.givenUp == nil {
		c.givenUp = c.collFault(c.tag, true)
	}
	return c.givenUp
}

// renewNode is renewArea for the stages of calls.
func (c *Context) renewNode() {
	if c.host == nil {
		return
	}
	n := c.host.ctx
	if c.blocking == nil {
		n.collSeq = c.collSeq * 2
		n.renewArea()
	} else if n.area != nil {
		n.area.Renew(0)
	}
}
