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

// nodePart is what the ranks of this host have of a communicator over several: a
// context of their own, under an id that follows from its, and in it a board. In
// a blocking two-level algorithm the stages that concern only them go over it.
// Calls are made on the communicator alone; what ends one there ends its stages.
//
// The engine's lock guards it.
type nodePart struct {
	ctx   *Context
	ranks []int32 // its members, by rank there

	req     Request  // stands for the call to others, between its parts
	msgs    CollArgs // of what goes by messages
	inside  CollArgs // of the stage over the board
	scratch []byte   // of the whole algorithm
	packed  []byte   // strided buffers of a reduction
	bufs    [3]buffer.Buf
}

// onBoard is the algorithm for a stage inside a node, nil: it goes by messages.
func onBoard(op collectives.Op) *collectives.Algorithm {
	if op == collectives.OpBcast || op == collectives.OpReduce {
		return collectives.SharedOf(op)
	}
	return nil
}

// Divide tells that the members of c are on several hosts, and which of them, by
// rank, are on this one. It comes before any call on c.
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
	e.dropBoard(c)
	if !n.mayShare() {
		return nil
	}
	if e.contexts[n.ID] != nil {
		return fmt.Errorf("communicator %v exists already", n.ID)
	}
	n.offerBoard()
	n.shareFrom, n.whole = c.shareFrom, c
	c.node = &nodePart{ctx: n, ranks: slices.Clone(here)}
	if c.faults != nil {
		n.makeFaults()
	}
	e.contexts[n.ID] = n
	n.countLost()
	e.hear(n)
	return nil
}

// endNode ends what the ranks of this host have of a communicator that has ended.
func (e *Engine) endNode(n *Context) {
	e.dropBoard(n)
	delete(e.contexts, n.ID)
	e.unhold(n)
	e.dropArrived(n.ID)
}

// takes reports whether a call may use the board: the same on all ranks of the
// node.
func (s *nodePart) takes(a *CollArgs, tag int32) bool {
	return a.Alg.Stages > 0 && s.ctx.boardState != boardNever && tag >= s.ctx.shareFrom && a.InBlocks == nil
}

// fits reports whether a stage inside the node goes over the board.
func (s *nodePart) fits(a *collectives.Args, unit int64) bool {
	room := s.ctx.room.Load()
	return onBoard(a.Op) != nil && room > 0 && collectives.Published(a) <= dtype.Quo(room, max(1, unit))
}

// Select makes it the Selector of its stages: there is no other choice.
func (s *nodePart) Select(*collectives.Args, int, bool) *collectives.Algorithm { return s.inside.Alg }

// staged runs a call whose algorithm consists of stages: those inside the node over
// the board where they fit, and what lies between by messages.
func (e *Engine) staged(c *Context, a *CollArgs, tag int32, pending bool) *fault.Fault {
	if f := c.startFault(a, tag, pending); f != nil {
		e.refuseColl(c, a, tag, f)
		return f
	}
	s := c.node
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

// stands makes c.inside stand for the call while no part of it is under way.
func (s *nodePart) stands() {
	s.req.op = s.msgs.Op
	s.ctx.whole.inside = &s.req
}

func (s *nodePart) begin(a *CollArgs) {
	s.msgs = *a
	s.msgs.Keep, s.msgs.Offer = nil, nil
	s.inside = s.msgs
	s.inside.Table = s
	s.bufs[collectives.In], s.bufs[collectives.Out] = a.In, a.Out
	if a.Kernel != nil && (a.In.Strided() || a.Out.Strided()) {
		// Kernels work on elements that stand side by side, in all stages on the same.
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
func (s *nodePart) end() {
	s.msgs, s.inside, s.bufs = CollArgs{}, CollArgs{}, [3]buffer.Buf{}
	if cap(s.scratch) > maxKeptScratch {
		s.scratch = nil
	}
	if cap(s.packed) > maxKeptScratch {
		s.packed = nil
	}
}

// grown is n bytes of memory that is used again.
func grown(m *[]byte, n int64) []byte {
	if int64(cap(*m)) < n {
		*m = make([]byte, n)
	}
	return (*m)[:n]
}

// stages runs the stages one after the other. The caller's arguments are not handed
// out: they would be on the heap in every call.
func (e *Engine) stages(c *Context, tag int32) *fault.Fault {
	s := c.node
	alg, unit, a := s.msgs.Alg, s.msgs.Unit, &s.msgs.Args
	from, to := 0, 0 // rounds that are to be run by messages
	for i := range alg.Stages {
		call := *a
		g, at, inside := alg.Stage(a, i)
		rounds, board := 0, false
		if g != nil {
			rounds = g.Rounds(a)
			if board = inside && s.fits(a, unit); board {
				s.stage(a, &at, unit)
			}
		}
		*a = call
		if board {
			if f := e.stageMsgs(c, from, to); f != nil {
				return f
			}
			from = to
			ran, f := e.stageBoard(c, tag, i)
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

// stage sets up the arguments of a stage over the board.
func (s *nodePart) stage(a *collectives.Args, at *[3]collectives.Ref, unit int64) {
	x := &s.inside
	x.Alg = onBoard(a.Op)
	x.Args = collectives.Args{Op: a.Op, Rank: a.Rank, Size: a.Size, Root: a.Root, Count: a.Count, InPlace: a.InPlace}
	x.Args.Shared = dtype.Quo(s.ctx.room.Load(), max(1, unit))
	x.Kernel = nil
	if a.Op == collectives.OpReduce {
		x.Kernel = s.msgs.Kernel
	}
	x.In = s.part(at[collectives.In], a.InLen()*unit, unit)
	x.Out = s.part(at[collectives.Out], a.OutLen()*unit, unit)
}

// part is n bytes at a place in the buffers of the call.
func (s *nodePart) part(at collectives.Ref, n, unit int64) buffer.Buf {
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
	s := c.node
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

// stageNumber is the number of a stage as a call on the node's context: of a call
// there is no more than one before what lies between the nodes, and one after it.
func stageNumber(tag int32, stage int) int32 {
	return int32((uint32(tag)*2 + uint32(min(stage, 1))) & seqMask)
}

// stageBoard runs a stage over the board. ran is false if the ranks share no memory,
// which they find out in the first one.
func (e *Engine) stageBoard(c *Context, tag int32, stage int) (ran bool, f *fault.Fault) {
	s := c.node
	n := s.ctx
	if f := c.givenUp; f != nil {
		e.dropTag(c, tag)
		return false, f
	}
	n.tag, n.givenUp = stageNumber(tag, stage), nil
	n.collSeq = uint64(n.tag) + 1
	n.forgetEarly()
	if n.boardState != boardMade {
		f = e.settleBoard(n, &s.inside, n.tag)
	}
	if f == nil && n.board != nil {
		ran, f = true, e.boardColl(n, &s.inside, n.tag, true)
	}
	n.inside = nil
	if f != nil {
		f = e.stageFault(c, tag, f)
	}
	return ran, f
}

// forgetEarly forgets what was told of stages that have passed.
func (c *Context) forgetEarly() {
	if t := c.faults; t != nil && len(t.early) > 0 {
		t.early = slices.DeleteFunc(t.early, func(g givenUp) bool { return shmcoll.Later(uint32(c.tag), uint32(g.to)) })
	}
}

// stageFault is the fault of a stage as one of the call, of which all ranks are told
// that may not hear of it otherwise.
func (e *Engine) stageFault(c *Context, tag int32, f *fault.Fault) *fault.Fault {
	e.dropTag(c, tag)
	if f.Class == fault.Cancelled {
		e.revoke(c)
		return f
	}
	if of := c.partFault(); of != nil {
		return of
	}
	if f.Peer >= 0 && int(f.Peer) < len(c.node.ranks) {
		f = faultAt(f, seat(c.node.ranks[f.Peer]))
	}
	if f.Class == fault.Mismatch && f.Err != nil {
		f.Err = fmt.Errorf("the part of %s on this host: %w", c.node.msgs.Op, f.Err)
	}
	if f.Class != fault.Aborted {
		e.tell(c, kindCollFail, wire.TrafficColl, tag, culprit(f))
	}
	return f
}

// strays tells on the board that this rank makes a call by messages alone: another
// one may wait there for it.
func (s *nodePart) strays(tag int32) {
	n := s.ctx
	if s.msgs.Alg != nil || n.board == nil {
		return
	}
	n.board.TellElsewhere(shmcoll.Seq(stageNumber(tag, 0)))
	n.board.WakeAll()
}

// partFault is what ends the call of which a part is under way.
func (c *Context) partFault() *fault.Fault {
	if c.givenUp == nil {
		c.givenUp = c.collFault(c.tag, true)
	}
	return c.givenUp
}

// renewNode is renewBoard for the stages of calls.
func (c *Context) renewNode() {
	if c.node == nil {
		return
	}
	n := c.node.ctx
	if c.inside == nil {
		n.collSeq = c.collSeq * 2
		n.renewBoard()
	} else if n.board != nil {
		n.board.Renew(0)
	}
}
