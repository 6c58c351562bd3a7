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

// collQueue has the nonblocking and persistent calls of a communicator that use slot rings
// of its area (shmcoll.Ring). It is the hook that continues them. Until it is known whether
// all ranks have the memory, the calls wait here. If not all have it, they go by messages.
//
// All ranks must decide alike whether a call uses a ring. So the decision depends only on
// facts that all ranks know: the call's operation, length and number, and the outcome of
// the vote for the memory. It must not depend on which calls a rank has completed.
//
// The engine's lock guards all fields.
type collQueue struct {
	c          *Context
	open       bool // all ranks have the memory
	calls      []*coll
	persistent []*coll
	ring       shmcoll.Ring
	rings      [shmcoll.PersistentRings]shmcoll.Ring // one for each persistent call
}

// queueSteps is how many calls one Step continues. Later ones wait for slots.
const queueSteps = shmcoll.RingSlots

// ringOf returns the ring of the call with a tag; -1 means none.
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

// ringNumber returns the number in its ring of a call that has begun.
func (c *Context) ringNumber(tag int32) uint64 {
	if tag&persistBit == 0 {
		return c.collSeq - (c.collSeq-uint64(tag)-1)&seqMask
	}
	starts := c.starts[tag&seqMask>>startBits]
	return starts - (starts-uint64(tag)-1)&startMask
}

// RingRoom is SharedRoom for nonblocking calls.
func (c *Context) RingRoom(op collectives.Op) int64 {
	if c.room.Load() == 0 || op != collectives.OpBarrier && op != collectives.OpAllreduce {
		return 0
	}
	return shmcoll.RingRoom(c.Members.Len())
}

// entersQueue reports whether a call that relies on RingRoom uses a ring, or waits until
// that is known. The answer is the same on all ranks.
func (c *Context) entersQueue(a *CollArgs, tag int32) bool {
	return c.areaState != areaNever && !a.Tag.numbered() && c.ringOf(tag) >= 0
}

// enterQueue adds a call and continues it.
func (e *Engine) enterQueue(k *coll) {
	c := k.ctx
	l := c.queue
	if l == nil {
		l = &collQueue{c: c}
		c.queue = l
	}
	k.queue = l
	if len(l.calls)+len(l.persistent) == 0 {
		e.addWatch(l)
	}
	list := l.list(k)
	*list = append(*list, k)
	if l.open {
		l.begin(k)
	}
	l.Step()
	if k.queue != nil && !k.turn.Offered() {
		e.prog.Wake() // the other ranks do not know yet that this process waits
	}
}

func (l *collQueue) list(k *coll) *[]*coll {
	if k.tag&persistBit != 0 {
		return &l.persistent
	}
	return &l.calls
}

// ringFor returns the ring of a call.
func (l *collQueue) ringFor(k *coll) *shmcoll.Ring {
	if i := l.c.ringOf(k.tag); i > 0 {
		return &l.rings[i-1]
	}
	return &l.ring
}

func (l *collQueue) begin(k *coll) {
	r := l.ringFor(k)
	var out []byte
	if k.args.Op != collectives.OpBarrier {
		out = k.bufs[collectives.Out].Flat()
	}
	k.turn.Begin(r, l.c.ringNumber(k.tag), k.args.Op, out, k.unit, k.kernel)
	r.Tell(l.done(k))
}

// done returns up to which number this rank is done with the operations of a call's ring.
func (l *collQueue) done(k *coll) uint64 {
	switch {
	case k.tag&persistBit != 0:
		return k.turn.Number() - 1
	case len(l.calls) > 0:
		return l.calls[0].turn.Number() - 1
	}
	return l.c.collSeq
}

// Step implements processHook.
func (l *collQueue) Step() (moved bool) {
	if !l.open && !l.decided() {
		return false
	}
	moved = l.run(&l.calls)
	return l.run(&l.persistent) || moved
}

// run continues the first calls of a list.
func (l *collQueue) run(list *[]*coll) (moved bool) {
	e := l.c.e
	for i := 0; l.open && i < len(*list) && i < queueSteps; i++ {
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

// decided reports whether it is known if all ranks have the memory, and acts on it.
func (l *collQueue) decided() bool {
	switch l.c.e.pursueArea(l.c) {
	case areaMade:
		l.start()
	case areaNever:
		l.byMessages()
	default:
		return false
	}
	return true
}

// start begins the calls that have waited for the memory.
func (l *collQueue) start() {
	c, b := l.c, l.c.area
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
			if k.queue != nil && k.turn.Awaits(int(s.rank())) {
				c.e.abort(k, faultAt(f, s), f.Class != fault.ProcFailed)
			}
		}
	}
}

// byMessages begins the waiting calls as schedules.
func (l *collQueue) byMessages() {
	e := l.c.e
	calls, persistent := l.calls, l.persistent
	l.calls, l.persistent = nil, nil
	e.dropWatch(l)
	for _, k := range slices.Concat(calls, persistent) {
		if k.queue = nil; k.fault != nil {
			continue
		}
		k.args.Shared = 0
		args := k.args
		k.alg = k.table.Select(&args, int(k.unit), k.commutative)
		k.args.Segment = args.Segment
		k.bufs[collectives.Scratch] = buffer.Of(make([]byte, k.schedule())) // packed buffers stay where they are
		e.advance(k)
	}
}

// PrepareSleep asks to be woken only if a goroutine waits here. Otherwise this process has
// nothing to do for the others after it has published.
func (l *collQueue) PrepareSleep() (late bool) {
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
	if stuck || waits || len(l.c.drainers) > 0 {
		b.PrepareWait(stuck)
	} else {
		b.EndWait()
	}
	return false
}

func (l *collQueue) EndSleep() {
	if b := l.memory(); b != nil {
		b.EndWait()
	}
}

func (l *collQueue) quit(e *Engine, _ *fault.Fault) {
	l.calls, l.persistent = nil, nil
	e.dropWatch(l)
}

// memory returns the area with the rings, before or after the decision, or nil if it has
// not come.
func (l *collQueue) memory() *area {
	if l.c.area != nil {
		return l.c.area
	}
	return l.c.voted
}

// leaveQueue takes a call that has ended out of its queue.
func (e *Engine) leaveQueue(k *coll) {
	l := k.queue
	list := l.list(k)
	if i := slices.Index(*list, k); i >= 0 {
		*list = slices.Delete(*list, i, i+1)
	}
	if l.open && l.c.area != nil {
		done := k.turn.Number()
		if k.tag&persistBit == 0 {
			done = l.done(k)
		}
		l.ringFor(k).Tell(done)
	}
	k.queue = nil
	if len(l.calls)+len(l.persistent) == 0 {
		e.dropWatch(l)
	}
}

// queueSpin waits for the end of a call in a ring while nothing else is under way.
func (e *Engine) queueSpin(r *Request) {
	l := r.coll.queue
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

// strayedToRing returns the fault of a blocking call that another rank makes through a
// ring. If the call here does not block, this rank marks that it waits for messages.
func (c *Context) strayedToRing(tag int32) *fault.Fault {
	b, ring := c.area, c.ringOf(tag)
	if b == nil || ring < 0 {
		return nil
	}
	number := c.ringNumber(tag)
	if rank := b.InRing(ring, number); rank >= 0 {
		return &fault.Fault{Class: fault.Mismatch, Peer: int32(rank), Got: -1, Want: -1,
			Err: fmt.Errorf("collective call %d is made otherwise here than there, where it does not block", number)}
	}
	if ring == 0 && c.blocking == nil {
		b.TellElsewhere(shmcoll.Seq(tag))
		b.WakeWaiting()
	}
	return nil
}

// stray returns the fault of a call in a ring that another rank makes differently. It is
// called when this process is about to sleep.
func (l *collQueue) stray(k *coll) *fault.Fault {
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
