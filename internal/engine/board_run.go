// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/fault"
	"gompi/internal/progress"
	"gompi/internal/rollcall"
)

const (
	// boardWays is how often a rank gives way to others before it leaves an
	// operation, boardRush in how many it does not after one that took long.
	boardWays = 3
	boardRush = 100
)

// boardColl runs a collective on the board. What is quick needs no request;
// everything else goes on as one.
func (e *Engine) boardColl(c *Context, a *CollArgs, tag int32, pending bool) *fault.Fault {
	b := c.board
	if b != nil && !e.prog.Policy.Crowded() {
		b.fetchLine(a, boardSeq(tag))
	}
	if f := c.startFault(a, tag, pending); f != nil {
		e.refuseColl(c, a, tag, f)
		return f
	}
	if b.most = b.room; !e.prog.Policy.Crowded() {
		b.most = min(b.room, carriedBytes)
	}
	o := b.begin(a, tag)
	if e.prog.Policy.Crowded() && e.prog.Policy.Ranks == b.size {
		e.spread(b, a.Alg.Reads)
	}
	e.prog.Busy()
	b.req.op = a.Op
	c.inside = &b.req
	if !e.prog.Led() && a.User == nil {
		e.prog.Lead()
		turns := e.prog.Turns
		done := e.boardSpin(c, b, o)
		if e.prog.Looked(turns) {
			e.prog.Rest()
		} else {
			e.prog.Leave()
		}
		b.answer(e)
		if done && o.fault == nil {
			if o.reads {
				b.endRead(o, false)
			}
			o.forget()
			a.release()
			return nil
		}
	}
	return e.boardWait(c, a, tag, o)
}

// boardSpin tries to finish an operation while nothing else is going on.
func (e *Engine) boardSpin(c *Context, b *board, o *boardOp) bool {
	p := patience{MemoryWait: progress.NewMemoryWait(&e.prog.Policy)}
	p.Copies = o.reads
	// Of a part of a communicator others may be on this processor who have
	// something to do.
	crowded := e.prog.Policy.OS && e.prog.Policy.Crowded() && c.whole == nil
	for {
		if e.closed || o.reads && c.faults != nil {
			return false // whose memory it would read may be somebody else's
		}
		done := b.step(o)
		if o.told {
			o.told = false
			e.rouseOp(c, b)
		}
		if done {
			if o.all && b.after.some && e.prog.Policy.Crowded() {
				e.giveWay(b, nextSeq(o.seq))
			}
			return true
		}
		if o.moved && !e.mu.Contended() {
			p.Yields, p.stayed = 0, 0
			continue
		}
		if p.Left == 0 && crowded {
			b.patient(o, &p)
		}
		// Of two ranks on a processor the other one needs that late.
		if p.Left == 0 && b.told != b.finished && (p.Yields > 0 || len(b.mates.ranks) != 1) {
			b.tell()
			e.rouseOp(c, b)
		}
		if c.faults != nil || c.givenUp != nil || !e.prog.Pass(&p.MemoryWait) {
			return false
		}
		b.answer(e)
	}
}

// giveWay lets the ranks run that this rank is likely to wait for in the next
// operation, because it did when it last came from one of all ranks. Where ranks
// share processors, who comes to such an operation last is the first to leave
// it, and would find nothing there.
func (e *Engine) giveWay(b *board, seq uint32) {
	if b.after.rush > 0 {
		b.after.rush--
		return
	}
	b.expect(seq)
	for turn := 0; turn < boardWays && !b.came(seq); turn++ {
		if e.prog.Yield(turn) > 1 {
			b.after.rush = boardRush // others compute
			return
		}
	}
}

// came reports whether the ranks that giveWay waits for have published seq.
func (b *board) came(seq uint32) bool {
	for r := b.after.lo; r <= b.after.hi; r++ {
		if r != b.rank && !b.posted(r, seq) {
			return false
		}
	}
	return true
}

// answer tells a second caller who is here.
func (b *board) answer(e *Engine) {
	if b.ask != nil {
		b.ask.reply(e)
		b.ask = nil
	}
}

// boardWait goes on with an operation as a request.
func (e *Engine) boardWait(c *Context, a *CollArgs, tag int32, o *boardOp) *fault.Fault {
	r := e.newRequest(reqColl)
	r.op, r.ctx, r.user, r.rank, r.buf, r.tag = a.Op, c, a.User, rollcall.NoPeer, a.Out, tag
	k := e.newColl()
	r.coll = k
	k.req, k.ctx, k.tag, k.keep, k.board = r, c, tag, a.Keep, o
	c.colls.add(&k.atCtx, k)
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

// boardGone fails an operation that waits for ranks that have left.
func (e *Engine) boardGone(k *coll) {
	if k.ctx.faults == nil {
		return
	}
	for s, f := range k.ctx.losses {
		if k.ctx.board.awaits(k.board, int(s.rank())) {
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
	b, o := k.ctx.board, k.board
	next := o.next
	done := b.step(o)
	if moved = done || o.told || o.moved || o.next != next; !moved {
		if !e.prog.Arming() {
			return false
		}
		f := e.stray(k)
		if f == nil {
			return false
		}
		o.fault = f
	}
	if o.told {
		o.told = false
		e.rouseOp(k.ctx, b)
	}
	switch {
	case o.fault != nil:
		e.abort(k, o.fault, true)
	case done:
		e.finish(k)
	}
	return true
}

// Step, PrepareSleep and EndSleep make an operation on a board a hook.
func (k *coll) Step() bool         { return k.ctx.e.stepBoard(k) }
func (k *coll) PrepareSleep() bool { return k.ctx.board.doze() }
func (k *coll) EndSleep()          { k.ctx.board.wake() }
func (k *coll) quit(e *Engine, f *fault.Fault) {
	k.fault = f
	e.leaveOp(k)
}

// leaveOp ends an operation here, well or not: whoever waits for this rank's
// use of old publications need not any more.
func (e *Engine) leaveOp(k *coll) {
	e.dropWatch(k)
	b := k.ctx.board
	if k.board.reads {
		b.endRead(k.board, k.fault != nil)
	}
	k.board.forget()
	if k.fault != nil {
		b.finished = k.board.seq
		b.tell()
		e.rouse(k.ctx, b)
	}
}

// Reads reports whether the ranks may count on reading each other's memory; see
// SharedRoom.
func (c *Context) Reads() bool { return c.reads.Load() }

// SharedRoom is the room for one publication, in bytes, in memory that all
// ranks of the communicator share; 0: they share none. As long as that is not
// decided, they may count on it: the first call that does finds out, and
// chooses again (CollArgs.Table).
func (c *Context) SharedRoom() int64 { return c.room.Load() }
