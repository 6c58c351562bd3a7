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

// board is a board (internal/engine/shmcoll) as a communicator has it.
type board struct {
	shmcoll.Board
	heap *shmcoll.Heap // where it lies
	// inBlock: from at on, not as the first in its heap.
	inBlock bool
	at      int
	regions nodeRegions
	direct  *collectives.Algorithm // of what the board leaves to messages; nil if not all ranks can read

	// While the operation has no request of its own, req stands for it to
	// others, and ask tells that a second caller wonders who is here.
	req  Request
	ask  *question
	slot int // of an operation that takes long, in the roll call; -1

	// brief are the calls that may be made the brief way: of each operation those like the
	// last that went over cells. Whatever that was chosen by is the same then.
	brief [collectives.NumOps]briefShape
}

// briefShape is what a brief call has in common with the one before. The zero value is that
// of none.
type briefShape struct {
	count, unit int64
	commutative bool
}

// learn takes in a call that went over the board.
func (b *board) learn(a *CollArgs) {
	switch g := &a.Args; {
	case g.Op == collectives.OpAllgatherv || g.Op == collectives.OpReduceScatter: // they have lists
	case !a.Alg.Reads:
		b.brief[g.Op] = briefShape{g.Count, a.Unit, a.Commutative}
	case g.Op == collectives.OpAlltoallv && b.Size() == 2:
		b.brief[g.Op] = briefShape{unit: 1}
	}
}

// newBoard is this rank's view of the board of c.
func newBoard(mem []byte, c *Context) *board {
	b := &board{slot: -1}
	b.Open(mem, c.Rank, c.Members.Len(), nodeWaker{c})
	return b
}

// nodeWaker wakes the members of a communicator.
type nodeWaker struct{ *Context }

func (c nodeWaker) Wake(rank int) {
	b := c.board
	if b == nil {
		b = c.voted
	}
	c.e.wakeMember(c.Context, b, rank)
}

// nodeRegions is the memory of the ranks of a board, as they read each other's.
type nodeRegions struct {
	singleCopy transport.SingleCopy
	memories   []*Memory // by rank
}

func (g *nodeRegions) Register(buf []byte) uint64 { return g.singleCopy.Register(buf) }
func (g *nodeRegions) Unregister(key uint64)      { g.singleCopy.Unregister(key) }

// Gone is of who has left: a death has ended the operation.
func (g *nodeRegions) Gone(rank int) *fault.Fault {
	if g.memories[rank].gone {
		return &fault.Fault{Class: fault.Left, Peer: int32(rank), Err: left{int32(rank), hasFinalized}}
	}
	return nil
}

// Read holds the engine's lock, with which alone memory goes.
func (g *nodeRegions) Read(rank int, dst []byte, key uint64, off int64) (err error) {
	m := g.memories[rank].mem
	for at := 0; at < len(dst) && err == nil; at += transport.MaxRead {
		err = m.Read(dst[at:min(at+transport.MaxRead, len(dst))], key, off+int64(at))
	}
	return err
}

// boardWays is how often a rank yields to others before it leaves an operation.
const boardWays = 3

// boardColl runs a collective on the board. What is quick needs no request;
// everything else goes on as one.
func (e *Engine) boardColl(c *Context, a *CollArgs, tag int32, pending bool) *fault.Fault {
	b, oversubscribed := c.board, e.prog.Policy.Oversubscribed()
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
	return e.boardWait(c, a, tag)
}

// quick does what has begun on the board of c, and ends it, if that is quick. alone: it may
// be waited for here. size is how much the roll call says of it.
func (b *board) quick(c *Context, op fault.Call, size int64, oversubscribed, alone bool) bool {
	e := c.e
	if oversubscribed && e.prog.Policy.Ranks == b.Size() {
		b.Rebalance()
	}
	e.prog.Busy()
	b.req.op = op
	c.inside = &b.req
	if e.prog.Led() || !alone {
		return false
	}
	e.prog.Lead()
	turns := e.prog.Turns
	e.prog.Attend()
	done := e.boardSpin(c, b, size)
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

// boardSpin tries to finish an operation while nothing else is going on.
func (e *Engine) boardSpin(c *Context, b *board, size int64) bool {
	p := progress.NewMemoryWait(&e.prog.Policy)
	p.Copies = b.Reads()
	stayed, moves := 0, 0 // 1 + the yields after which it looked on
	// Of a part of a communicator others may be on this processor who have
	// something to do.
	oversubscribed := e.prog.Policy.OS && e.prog.Policy.Oversubscribed() && c.whole == nil
	for {
		if e.closed || b.Reads() && c.faults != nil {
			return false // whose memory it would read may be somebody else's
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

// note tells the roll call of an operation that takes long.
func (b *board) note(e *Engine, c *Context, size int64) {
	if e.cfg.Book != nil {
		en := e.entry(b.req.op, c, callreg.NoPeer, c.tag, size)
		b.slot = e.cfg.Book.Enter(&en)
	}
}

// yieldAfter lets the ranks run that this rank is likely to wait for next: see
// Board.YieldAfter.
func (e *Engine) yieldAfter(b *board) {
	for turn := 0; turn < boardWays && !b.Came(); turn++ {
		if e.prog.Yield(turn) > 1 {
			b.Rush()
			return
		}
	}
}

// answer tells a second caller who is here.
func (b *board) answer(e *Engine) {
	if b.ask != nil {
		b.ask.reply(&e.waiters)
		b.ask = nil
	}
}

// boardWait goes on with an operation as a request.
func (e *Engine) boardWait(c *Context, a *CollArgs, tag int32) *fault.Fault {
	r := e.newRequest(reqColl)
	r.op, r.ctx, r.user, r.rank, r.buf, r.tag = a.Op, c, a.User, callreg.NoPeer, a.Out, tag
	k := e.newColl()
	r.coll = k
	k.req, k.ctx, k.tag, k.keep, k.board = r, c, tag, a.Keep, c.board
	c.colls.Add(&k.atCtx, k)
	e.addWatch(k)
	b := c.board
	c.inside = r
	f := c.givenUp
	if f == nil {
		f = c.collFault(tag, true)
	}
	if f != nil {
		// It ends here and now: a closed engine has nothing left to poll.
		e.abort(k, f, f.Class == fault.Unreachable)
		for e.colls.ready != nil {
			e.runReady()
		}
	} else if e.stepBoard(k); k.fault == nil && r.coll == k {
		e.boardGone(k)
	}
	f = e.waitOne(r)
	c.inside = &b.req
	e.freeRequest(r)
	return f
}

// awaits reports whether a call through shared memory cannot end without a rank
// that has not done its part.
func (k *coll) awaits(rank int) bool {
	switch {
	case k.board != nil:
		return k.board.Awaits(rank)
	case k.line != nil:
		return k.line.open && k.turn.Awaits(rank)
	}
	return false
}

// boardGone fails an operation that waits for ranks that have left.
func (e *Engine) boardGone(k *coll) {
	if k.ctx.faults == nil {
		return
	}
	for s, f := range k.ctx.losses {
		if k.board.Awaits(int(s.rank())) {
			e.abort(k, faultAt(f, s), f.Class != fault.ProcFailed)
			return
		}
	}
}

// stepBoard goes on with one operation.
func (e *Engine) stepBoard(k *coll) (moved bool) {
	if k.fault != nil {
		return false
	}
	b := k.board
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

// Step, PrepareSleep and EndSleep make an operation on a board a hook.
func (k *coll) Step() bool         { return k.ctx.e.stepBoard(k) }
func (k *coll) PrepareSleep() bool { return k.board.PrepareSleep() }
func (k *coll) EndSleep()          { k.board.EndSleep() }
func (k *coll) quit(e *Engine, f *fault.Fault) {
	k.fault = f
	e.leaveOp(k)
}

// leaveOp ends an operation here, well or not.
func (e *Engine) leaveOp(k *coll) {
	e.dropWatch(k)
	k.board.End(k.fault != nil)
}

// Reads reports whether the ranks may count on reading each other's memory; see
// SharedRoom.
func (c *Context) Reads() bool { return c.reads.Load() }

// SharedRoom is the room for one cell, in bytes, in memory that all
// ranks of the communicator share; 0: they share none. As long as that is not
// decided, they may count on it: the first call that does finds out, and
// chooses again (CollArgs.Table).
func (c *Context) SharedRoom() int64 { return c.room.Load() }

// boardRest does by messages what an operation on the board has left.
func (e *Engine) boardRest(c *Context, a *CollArgs) *fault.Fault {
	if a.Args.Op != collectives.OpGatherv {
		return nil
	}
	rest := *a
	if !c.board.Late(&rest.Args) {
		return nil
	}
	rest.Alg, rest.Keep = c.board.direct, nil
	return e.goOn(c, &rest)
}

// stray is the fault of an operation on the board that this process is about to
// sleep over while another rank makes the call by messages.
func (e *Engine) stray(k *coll) *fault.Fault {
	came := -1
	if e.table.ArrivedLen() > 0 {
		if a := e.table.Peek(k.ctx.keys[wire.TrafficColl].With(match.Any, k.tag)); a != nil {
			came = int(a.Key.Source())
		}
	}
	if f := k.board.Stray(came, k.ctx.whole != nil); f != nil || k.ctx.whole != nil {
		return f
	}
	return k.ctx.strayedToRing(k.tag)
}

// strayed is that of a call by messages, which this process tells on the board.
func (e *Engine) strayed(k *coll) *fault.Fault {
	c := k.ctx
	if f := c.strayedToRing(k.tag); f != nil {
		return f
	}
	if c.inside == nil || c.inside.coll != k || c.tag != k.tag || k.tag < c.shareFrom {
		return nil
	}
	if c.node != nil {
		c.node.strays(k.tag)
		return nil
	}
	switch c.boardState { // somebody may be waiting for this rank's vote
	case boardUndecided:
		e.askBoard(c)
	case boardVoted:
		e.countVotes(c)
	}
	b := c.board
	if b == nil {
		b = c.voted
	}
	if b == nil || k.alg == b.direct {
		return nil
	}
	b.TellElsewhere(shmcoll.Seq(k.tag))
	b.WakeAll()
	if b != c.board {
		return nil // nobody publishes there before all have voted
	}
	return b.Strayed(shmcoll.Seq(k.tag))
}
