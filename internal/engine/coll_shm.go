// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/collectives"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/engine/match"
	"gompi/internal/engine/progress"
	"gompi/internal/engine/shmcoll"
	"gompi/transport"
)

// area is a communicator's view of its shared-memory area (internal/engine/shmcoll).
type area struct {
	shmcoll.Area
	heap *shmcoll.Heap // the heap in which it lies
	// inBlock: it lies at offset at, in a block, not at the beginning of its heap.
	inBlock bool
	at      int
	regions areaRegions
	direct  *collectives.Algorithm // for what operations leave to messages; nil if not all ranks can read

	// While the operation has no request of its own, req stands for it. ask is the query of
	// a second caller that wants the first one's call site.
	req  Request
	ask  *siteQuery
	slot int // registry slot of an operation that takes long; -1: none

	// fast has, for each operation, the shape of the last call whose data went through
	// cells. A call of the same shape may take the fast path: everything that chose the
	// algorithm is the same.
	fast [collectives.NumOps]fastShape
}

// fastShape is what a call must have in common with the one before to take the fast path.
// No call has the zero value.
type fastShape struct {
	count, unit int64
	commutative bool
}

// learn remembers the shape of a call that used the area.
func (b *area) learn(a *CollArgs) {
	switch g := &a.Args; {
	case g.Op == collectives.OpAllgatherv || g.Op == collectives.OpReduceScatter: // they have lists of counts
	case !a.Alg.Reads:
		b.fast[g.Op] = fastShape{g.Count, a.Unit, a.Commutative}
	case g.Op == collectives.OpAlltoallv && b.Size() == 2:
		b.fast[g.Op] = fastShape{unit: 1}
	}
}

// newArea returns this rank's view of the area of c.
func newArea(mem []byte, c *Context) *area {
	b := &area{slot: -1}
	b.Open(mem, c.Rank, c.Members.Len(), areaWaker{c})
	return b
}

// areaWaker wakes members of a communicator.
type areaWaker struct{ *Context }

func (c areaWaker) Wake(rank int) {
	b := c.area
	if b == nil {
		b = c.voted
	}
	c.e.wakeMember(c.Context, b, rank)
}

// areaRegions lets the ranks of an area read each other's memory.
type areaRegions struct {
	singleCopy transport.SingleCopy
	memories   []*Memory // by rank
}

func (g *areaRegions) Register(buf []byte) uint64 { return g.singleCopy.Register(buf) }
func (g *areaRegions) Unregister(key uint64)      { g.singleCopy.Unregister(key) }

// Gone reports ranks that have left. A death has ended the operation already.
func (g *areaRegions) Gone(rank int) *fault.Fault {
	if g.memories[rank].gone {
		return &fault.Fault{Class: fault.Left, Peer: int32(rank), Err: left{int32(rank), hasFinalized}}
	}
	return nil
}

// Read runs with the engine's lock held; memory does not go away under it.
func (g *areaRegions) Read(rank int, dst []byte, key uint64, off int64) (err error) {
	m := g.memories[rank].mem
	for at := 0; at < len(dst) && err == nil; at += transport.MaxRead {
		err = m.Read(dst[at:min(at+transport.MaxRead, len(dst))], key, off+int64(at))
	}
	return err
}

// yieldTurns is how often a rank yields to other ranks after an operation.
const yieldTurns = 3

// areaColl runs a collective in the area. A quick one needs no request; any other goes on
// as a request.
func (e *Engine) areaColl(c *Context, a *CollArgs, tag int32, pending bool) *fault.Fault {
	b, oversubscribed := c.area, e.prog.Policy.Oversubscribed()
	if b != nil && !oversubscribed {
		b.FetchLine(&a.Call, shmcoll.Seq(tag))
	}
	if f := c.startFault(a, tag, pending); f != nil {
		e.refuseColl(c, a, tag, f)
		return f
	}
	b.Begin(&a.Call, shmcoll.Seq(tag), a.Alg.Reads, oversubscribed)
	if b.quick(c, a.Op, a.Out.Bytes(), oversubscribed, a.User == nil) {
		b.learn(a)
		a.release()
		return nil
	}
	return e.areaWait(c, a, tag)
}

// quick runs the operation that has begun in the area of c, and ends it if that is quick.
// alone says that this goroutine may wait for it here. size is what the blocking-call
// registry records.
func (b *area) quick(c *Context, op fault.Call, size int64, oversubscribed, alone bool) bool {
	e := c.e
	if oversubscribed && e.prog.Policy.Ranks == b.Size() {
		b.Rebalance()
	}
	e.prog.Busy()
	b.req.op = op
	c.blocking = &b.req
	if e.prog.Led() || !alone {
		return false
	}
	e.prog.Lead()
	turns := e.prog.Turns
	e.prog.Attend()
	done := e.areaSpin(c, b, size)
	if b.slot >= 0 {
		e.cfg.Book.Leave(b.slot)
		b.slot = -1
	}
	if e.prog.Looked(turns) {
		e.prog.Rest()
	} else {
		e.prog.Leave()
	}
	b.answer(e)
	if !done || b.Fault() != nil {
		return false
	}
	b.End(false)
	return true
}

// areaSpin tries to finish an operation while nothing else is under way.
func (e *Engine) areaSpin(c *Context, b *area, size int64) bool {
	p := progress.NewMemoryWait(&e.prog.Policy)
	p.Copies = b.Reads()
	stayed, moves := 0, 0 // 1 + the number of yields when it last looked on instead
	// If the area covers a part of the communicator, other processes on this processor may
	// have something to do.
	oversubscribed := e.prog.Policy.OS && e.prog.Policy.Oversubscribed() && c.whole == nil
	for {
		if e.closed || b.Reads() && c.faults != nil {
			return false // the memory that it would read may belong to another process by now
		}
		done := b.Step()
		if b.Told() {
			b.WakeSleepers()
		}
		if done {
			if e.prog.Policy.Oversubscribed() && b.YieldAfter() {
				e.yieldAfter(b)
			}
			return true
		}
		if b.Moved() {
			if moves++; moves == progress.LongMoves {
				b.note(e, c, size)
			}
			if !e.mu.Contended() {
				p.YieldCost, stayed = 0, 0
				continue
			}
		}
		if p.SpinsLeft == 0 && oversubscribed {
			if looks := b.LookOn(stayed == p.YieldCost+1); looks > 0 {
				stayed, p.SpinsLeft = p.YieldCost+1, looks
			}
		}
		if p.SpinsLeft == 0 && b.TellLate(p.YieldCost > 0) {
			b.WakeSleepers()
		}
		if c.faults != nil || c.givenUp != nil || !e.prog.Pass(&p) {
			return false
		}
		b.answer(e)
	}
}

// note records an operation that takes long in the blocking-call registry.
func (b *area) note(e *Engine, c *Context, size int64) {
	if e.cfg.Book != nil {
		en := e.entry(b.req.op, c, callreg.NoPeer, c.tag, size)
		b.slot = e.cfg.Book.Enter(&en)
	}
}

// yieldAfter yields to the ranks that this rank is likely to wait for next: see
// Area.YieldAfter.
func (e *Engine) yieldAfter(b *area) {
	for turn := 0; turn < yieldTurns && !b.Came(); turn++ {
		if e.prog.Yield(turn) > 1 {
			b.Rush()
			return
		}
	}
}

// answer answers the query of a second caller.
func (b *area) answer(e *Engine) {
	if b.ask != nil {
		b.ask.reply(&e.waiters)
		b.ask = nil
	}
}

// areaWait continues an operation as a request.
func (e *Engine) areaWait(c *Context, a *CollArgs, tag int32) *fault.Fault {
	r := e.newRequest(reqColl)
	r.op, r.ctx, r.user, r.rank, r.buf, r.tag = a.Op, c, a.User, callreg.NoPeer, a.Out, tag
	k := e.newColl()
	r.coll = k
	k.req, k.ctx, k.tag, k.keep, k.area = r, c, tag, a.Keep, c.area
	c.colls.Add(&k.atCtx, k)
	e.addWatch(k)
	b := c.area
	c.blocking = r
	f := c.givenUp
	if f == nil {
		f = c.collFault(tag, true)
	}
	if f != nil {
		// It ends at once: a closed engine polls no more.
		e.abort(k, f, f.Class == fault.Unreachable)
		for e.colls.ready != nil {
			e.runReady()
		}
	} else if e.stepArea(k); k.fault == nil && r.coll == k {
		e.areaGone(k)
	}
	f = e.waitOne(r)
	c.blocking = &b.req
	e.freeRequest(r)
	return f
}

// awaits reports whether a call through shared memory cannot end because a rank has not
// done its part.
func (k *coll) awaits(rank int) bool {
	switch {
	case k.area != nil:
		return k.area.Awaits(rank)
	case k.queue != nil:
		return k.queue.open && k.turn.Awaits(rank)
	}
	return false
}

// areaGone fails an operation that waits for ranks that have left.
func (e *Engine) areaGone(k *coll) {
	if k.ctx.faults == nil {
		return
	}
	for s, f := range k.ctx.losses {
		if k.area.Awaits(int(s.rank())) {
			e.abort(k, faultAt(f, s), f.Class != fault.ProcFailed)
			return
		}
	}
}

// stepArea continues one operation.
func (e *Engine) stepArea(k *coll) (moved bool) {
	if k.fault != nil {
		return false
	}
	b := k.area
	next := b.Next()
	done, told, f := b.Step(), b.Told(), b.Fault()
	if moved = done || told || b.Moved() || b.Next() != next; !moved {
		if !e.prog.Arming() {
			return false
		}
		if f = e.stray(k); f == nil {
			return false
		}
	}
	if told {
		b.WakeSleepers()
	}
	switch {
	case f != nil:
		e.abort(k, f, true)
	case done:
		e.finish(k)
	}
	return true
}

// Step implements processHook.
func (k *coll) Step() bool         { return k.ctx.e.stepArea(k) }
func (k *coll) PrepareSleep() bool { return k.area.PrepareSleep() }
func (k *coll) EndSleep()          { k.area.EndSleep() }
func (k *coll) quit(e *Engine, f *fault.Fault) {
	k.fault = f
	e.leaveOp(k)
}

// leaveOp ends an operation here, with success or not.
func (e *Engine) leaveOp(k *coll) {
	e.dropWatch(k)
	k.area.End(k.fault != nil)
}

// Reads reports whether calls may rely on reading all ranks' memory; see SharedRoom.
func (c *Context) Reads() bool { return c.reads.Load() }

// SharedRoom returns how many bytes fit a cell of memory that all ranks of the communicator
// share, or 0 if they share none. Calls may rely on it before that is decided: the first
// such call finds out, and chooses again (CollArgs.Table).
func (c *Context) SharedRoom() int64 { return c.room.Load() }

// areaRest does by messages what an operation in the area has left.
func (e *Engine) areaRest(c *Context, a *CollArgs) *fault.Fault {
	if a.Args.Op != collectives.OpGatherv {
		return nil
	}
	rest := *a
	if !c.area.Late(&rest.Args) {
		return nil
	}
	rest.Alg, rest.Keep = c.area.direct, nil
	return e.goOn(c, &rest)
}

// stray returns the fault of an operation in the area if another rank makes the call by
// messages. It is called when this process is about to sleep.
func (e *Engine) stray(k *coll) *fault.Fault {
	came := -1
	if e.table.ArrivedLen() > 0 {
		if a := e.table.Peek(k.ctx.keys[wire.TrafficColl].With(match.Any, k.tag)); a != nil {
			came = int(a.Key.Source())
		}
	}
	if f := k.area.Stray(came, k.ctx.whole != nil); f != nil || k.ctx.whole != nil {
		return f
	}
	return k.ctx.strayedToRing(k.tag)
}

// strayed is stray for a call by messages. It marks in the area that this rank makes the
// call by messages.
func (e *Engine) strayed(k *coll) *fault.Fault {
	c := k.ctx
	if f := c.strayedToRing(k.tag); f != nil {
		return f
	}
	if c.blocking == nil || c.blocking.coll != k || c.tag != k.tag || k.tag < c.shareFrom {
		return nil
	}
	if c.host != nil {
		c.host.strays(k.tag)
		return nil
	}
	switch c.areaState { // other ranks may wait for this rank's vote
	case areaUndecided:
		e.askArea(c)
	case areaVoted:
		e.countVotes(c)
	}
	b := c.area
	if b == nil {
		b = c.voted
	}
	if b == nil || k.alg == b.direct {
		return nil
	}
	b.TellElsewhere(shmcoll.Seq(k.tag))
	b.WakeAll()
	if b != c.area {
		return nil // ranks publish there only after all have voted
	}
	return b.Strayed(shmcoll.Seq(k.tag))
}
