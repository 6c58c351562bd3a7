// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
	"gompi/internal/engine/match"
	"gompi/internal/engine/progress"
	"gompi/internal/engine/shmcoll"
)

// line has the nonblocking and persistent calls of a communicator that go through
// rings of its board (shmcoll.Ring), and is the hook that goes on with them. As
// long as it is not known whether all ranks have the memory, they wait here; if
// not all have it, they go by messages.
//
// Whether a call goes that way hangs on what all ranks know alike: its operation
// and length, its number, and what they come to know of the memory. What a rank has
// completed does not matter: it may be another one on each.
//
// The engine's lock guards it.
type line struct {
	c          *Context
	open       bool // all have the memory
	calls      []*coll
	persistent []*coll
	ring       shmcoll.Ring
	rings      [shmcoll.PersistentRings]shmcoll.Ring // of the persistent calls
}

// lineSteps is with how many calls a look goes on: of more, those behind wait for
// slots.
const lineSteps = shmcoll.RingSlots

// ringOf is the ring of the call with that tag, -1: none.
func (c *Context) ringOf(tag int32) int {
	if c.Members.Len() > shmcoll.TreeRanks {
		return -1
	}
	if tag&persistBit == 0 {
		if tag < c.shareFrom {
			return -1
		}
		return 0
	}
	n := int(tag&seqMask>>startBits) - c.ringFrom
	if c.ringFrom < 0 || n < 0 || n >= shmcoll.PersistentRings {
		return -1
	}
	return 1 + n
}

// ringNumber is the number of a call in its ring, which has begun.
func (c *Context) ringNumber(tag int32) uint64 {
	if tag&persistBit == 0 {
		return c.collSeq - (c.collSeq-uint64(tag)-1)&seqMask
	}
	starts := c.starts[tag&seqMask>>startBits]
	return starts - (starts-uint64(tag)-1)&startMask
}

// RingRoom is SharedRoom for calls that do not block.
func (c *Context) RingRoom(op collectives.Op) int64 {
	if c.room.Load() == 0 || op != collectives.OpBarrier && op != collectives.OpAllreduce {
		return 0
	}
	return shmcoll.RingRoom(c.Members.Len())
}

// lines reports whether a call that has counted on RingRoom goes through a ring, or
// waits until that is known: the same on all ranks.
func (c *Context) lines(a *CollArgs, tag int32) bool {
	return c.boardState != boardNever && !a.Tag.numbered() && c.ringOf(tag) >= 0
}

// enterLine goes on with a call through its ring.
func (e *Engine) enterLine(k *coll) {
	c := k.ctx
	l := c.line
	if l == nil {
		l = &line{c: c}
		c.line = l
	}
	k.line = l
	if len(l.calls)+len(l.persistent) == 0 {
		e.addWatch(l)
	}
	list := l.list(k)
	*list = append(*list, k)
	if l.open {
		l.begin(k)
	}
	l.Step()
	if k.line != nil && !k.turn.Offered() {
		e.prog.Wake() // nobody knows that this process waits for more
	}
}

func (l *line) list(k *coll) *[]*coll {
	if k.tag&persistBit != 0 {
		return &l.persistent
	}
	return &l.calls
}

// ringFor is where the slots of a call are.
func (l *line) ringFor(k *coll) *shmcoll.Ring {
	if i := l.c.ringOf(k.tag); i > 0 {
		return &l.rings[i-1]
	}
	return &l.ring
}

func (l *line) begin(k *coll) {
	r := l.ringFor(k)
	var out []byte
	if k.args.Op != collectives.OpBarrier {
		out = k.bufs[collectives.Out].Flat()
	}
	k.turn.Begin(r, l.c.ringNumber(k.tag), k.args.Op, out, k.unit, k.kernel)
	r.Tell(l.done(k))
}

// done is up to which number this rank is done with the operations of a call's ring.
func (l *line) done(k *coll) uint64 {
	switch {
	case k.tag&persistBit != 0:
		return k.turn.Number() - 1
	case len(l.calls) > 0:
		return l.calls[0].turn.Number() - 1
	}
	return l.c.collSeq
}

// Step, PrepareSleep, EndSleep and quit make it a hook.
func (l *line) Step() (moved bool) {
	if !l.open && !l.decided() {
		return false
	}
	moved = l.run(&l.calls)
	return l.run(&l.persistent) || moved
}

// run goes on with some calls.
func (l *line) run(list *[]*coll) (moved bool) {
	e := l.c.e
	for i := 0; l.open && i < len(*list) && i < lineSteps; i++ {
		k := (*list)[i]
		if k.fault != nil {
			continue
		}
		if !k.turn.Offered() {
			var in []byte
			if k.args.Op != collectives.OpBarrier {
				in = k.bufs[collectives.In].Flat()
			}
			if !k.turn.Offer(in, l.done(k)) {
				continue
			}
			moved = true
		}
		done, f := k.turn.Take()
		switch {
		case done:
			e.finish(k)
			i--
			moved = true
		case f == nil && e.prog.Arming():
			f = l.stray(k)
		}
		if f != nil {
			e.abort(k, f, true)
			moved = true
		}
	}
	return moved
}

// decided reports whether it is known whether all ranks have the memory, and goes
// on accordingly.
func (l *line) decided() bool {
	switch l.c.e.pursueBoard(l.c) {
	case boardMade:
		l.start()
	case boardNever:
		l.byMessages()
	default:
		return false
	}
	return true
}

// start begins with the calls that have waited for the memory.
func (l *line) start() {
	c, b := l.c, l.c.board
	l.open = true
	b.OpenRing(&l.ring, 0)
	for i := range l.rings {
		b.OpenRing(&l.rings[i], 1+i)
	}
	for _, list := range [...][]*coll{l.calls, l.persistent} {
		for _, k := range list {
			l.begin(k)
		}
	}
	if c.faults == nil {
		return
	}
	for s, f := range c.losses {
		for k := range c.colls.Each {
			if k.line != nil && k.turn.Awaits(int(s.rank())) {
				c.e.abort(k, faultAt(f, s), f.Class != fault.ProcFailed)
			}
		}
	}
}

// byMessages begins them without it.
func (l *line) byMessages() {
	e := l.c.e
	calls, persistent := l.calls, l.persistent
	l.calls, l.persistent = nil, nil
	e.dropWatch(l)
	for _, k := range slices.Concat(calls, persistent) {
		if k.line = nil; k.fault != nil {
			continue
		}
		k.args.Shared = 0
		args := k.args
		k.alg = k.table.Select(&args, int(k.unit), k.commutative)
		k.args.Segment = args.Segment
		k.bufs[collectives.Scratch] = buffer.Of(make([]byte, k.schedule())) // what is packed stays where it is
		e.advance(k)
	}
}

// PrepareSleep: a process that nobody waits in has nothing to do for the others as
// soon as it has published. So it is not woken until somebody does.
func (l *line) PrepareSleep() (late bool) {
	b := l.memory()
	if b == nil {
		return false
	}
	stuck, waits := false, !l.open
	for _, list := range [...][]*coll{l.calls, l.persistent} {
		for _, k := range list {
			stuck = stuck || l.open && !k.turn.Offered()
			waits = waits || k.req.waiter != nil
		}
	}
	if stuck || waits || len(l.c.leavers) > 0 {
		b.PrepareWait(stuck)
	} else {
		b.EndWait()
	}
	return false
}

func (l *line) EndSleep() {
	if b := l.memory(); b != nil {
		b.EndWait()
	}
}

func (l *line) quit(e *Engine, _ *fault.Fault) {
	l.calls, l.persistent = nil, nil
	e.dropWatch(l)
}

// memory is that in which the rings are, or will be; nil if it has not come.
func (l *line) memory() *board {
	if l.c.board != nil {
		return l.c.board
	}
	return l.c.voted
}

// leaveLine takes a call that has ended out of its line.
func (e *Engine) leaveLine(k *coll) {
	l := k.line
	list := l.list(k)
	if i := slices.Index(*list, k); i >= 0 {
		*list = slices.Delete(*list, i, i+1)
	}
	if l.open && l.c.board != nil {
		done := k.turn.Number()
		if k.tag&persistBit == 0 {
			done = l.done(k)
		}
		l.ringFor(k).Tell(done)
	}
	k.line = nil
	if len(l.calls)+len(l.persistent) == 0 {
		e.dropWatch(l)
	}
}

// lineSpin looks for the end of a call in a ring while nothing else is going on.
func (e *Engine) lineSpin(r *Request) {
	l := r.coll.line
	if l == nil || !l.open || r.user != nil || e.prog.Led() || l.c.faults != nil {
		return
	}
	e.prog.Busy()
	e.prog.Lead()
	turns := e.prog.Turns
	r.owned = true
	e.prog.Attend()
	for p := progress.NewMemoryWait(&e.prog.Policy); ; {
		if l.Step() {
			p.YieldCost = 0
		}
		if r.done || l.c.faults != nil || !e.prog.Pass(&p) {
			break
		}
	}
	r.owned = false
	if e.prog.Looked(turns) {
		e.prog.Rest()
	} else {
		e.prog.Leave()
	}
}

// strayedToRing is the fault of a call that another rank makes through a ring. If it
// is none that blocks, this rank tells that it waits for messages.
func (c *Context) strayedToRing(tag int32) *fault.Fault {
	b, ring := c.board, c.ringOf(tag)
	if b == nil || ring < 0 {
		return nil
	}
	number := c.ringNumber(tag)
	if rank := b.InRing(ring, number); rank >= 0 {
		return &fault.Fault{Class: fault.Mismatch, Peer: int32(rank), Got: -1, Want: -1,
			Err: fmt.Errorf("collective call %d is made otherwise here than there, where it does not block", number)}
	}
	if ring == 0 && c.inside == nil {
		b.TellElsewhere(shmcoll.Seq(tag))
		b.WakeWaiting()
	}
	return nil
}

// stray is the fault of a call in a ring that another rank makes otherwise, when
// this process is about to sleep.
func (l *line) stray(k *coll) *fault.Fault {
	came, seq := -1, uint32(0)
	if l.c.e.table.ArrivedLen() > 0 {
		if a := l.c.e.table.Peek(l.c.keys[wire.TrafficColl].With(match.Any, k.tag)); a != nil {
			came = int(a.Key.Source())
		}
	}
	if k.tag&persistBit == 0 {
		seq = shmcoll.Seq(k.tag)
	}
	return k.turn.Stray(came, seq)
}
