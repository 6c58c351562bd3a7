// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/collectives/flat"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/engine/shmcoll"
	"gompi/transport"
)

// Whether the ranks of a communicator share memory is decided once, in the first
// blocking call that could use it. Each rank that needs to know asks for the
// memory, and votes for it there when it has it; one that does not get it tells
// the others. A rank does either, once. So all have voted for it, or somebody has
// not and never will, and whoever waits long enough comes to the same answer.
//
// Whether all can read each other's memory is decided likewise, in the first call
// that could use that, by votes on the board.

type boardState uint8

const (
	boardUndecided boardState = iota // this rank has not needed it yet
	boardAsked                       // it has asked for it
	boardVoted                       // it has it
	boardMade                        // all have it
	boardNever                       // somebody does not get it
)

type readState uint8

const (
	readsUndecided readState = iota // this rank has not needed it yet
	readsAsked                      // it is finding out whether it can read
	readsKnown                      // in Context.reads
)

func (c *Context) mayShare() bool {
	n := c.Members.Len()
	return n > 1 && n <= shmcoll.MaxRanks && c.Remote.Len() == 0
}

// offerBoard says what operations may count on until it is decided: the same on
// all ranks.
func (c *Context) offerBoard() {
	if !c.mayShare() {
		return
	}
	n := c.Members.Len()
	c.boardState = boardUndecided
	c.room.Store(int64(shmcoll.SharedRoom(n)))
	if n <= shmcoll.MaxReadRanks {
		c.readState = readsUndecided
		c.reads.Store(true)
	}
}

// lateShare is the number of the call from which on a communicator that may not
// live long asks for memory: that takes 1 to 5 ms, as all ranks wait for the agent
// and for each other, and a call by messages 10 to 100 us.
const lateShare = 32

// settleBoard begins a call that has counted on what is not decided yet: it waits
// for that, and chooses again. On a fault the call is given up.
func (e *Engine) settleBoard(c *Context, a *CollArgs, tag int32) *fault.Fault {
	v := &voting{c: c, tag: tag, reads: a.Alg.Reads}
	f := c.startFault(a, tag, a.Tag.numbered())
	if f == nil && !v.over(e) {
		r := e.newRequest(reqOther)
		r.op, r.ctx, r.user, r.rank, r.tag = a.Op, c, a.User, callreg.NoPeer, tag
		r.hang()
		r.rests = e.prog.Policy.HeavilyOversubscribed() // others may have to be started
		v.req, c.inside = r, r
		e.addWatch(v)
		if f = e.waitOne(r); f == nil {
			f = c.givenUp // after the decision
		}
		e.dropWatch(v)
		e.freeRequest(r)
	}
	if f != nil {
		if f.Class == fault.Cancelled { // nobody can finish the call without this rank
			e.revoke(c)
		}
		e.refuseColl(c, a, tag, f)
		return f
	}
	if a.Args.Reads = c.reads.Load(); c.board == nil {
		a.Args.Shared = 0
	}
	if a.Alg.Reads && !a.Args.Reads || a.Args.Shared == 0 {
		a.choose()
	}
	return nil
}

// choose chooses the algorithm again. It hands out a copy of the arguments: they
// would be on the heap in every call else.
func (a *CollArgs) choose() {
	args := a.Args
	a.Alg = a.Table.Select(&args, int(a.Unit), a.Commutative)
	a.Args.Segment = args.Segment
}

// voting is a call that waits for a decision.
type voting struct {
	c     *Context
	tag   int32
	reads bool
	req   *Request
}

// over reports whether what the call needs is decided.
func (v *voting) over(e *Engine) bool {
	switch e.pursueBoard(v.c) {
	case boardMade:
		return !v.reads || e.readsDecided(v.c)
	case boardNever:
		return true
	}
	return false
}

// Step, PrepareSleep, EndSleep and quit make it a hook.
func (v *voting) Step() bool {
	e := v.c.e
	if v.req.done {
		return false
	}
	f := v.c.collFault(v.tag, true)
	if f == nil && !v.over(e) {
		return false
	}
	r := v.req
	r.fail(f)
	e.dropWatch(v)
	e.complete(r)
	return true
}

// decides is the memory in which the ranks vote, nil if it has not come.
func (v *voting) decides() *board {
	if v.c.board != nil {
		return v.c.board
	}
	return v.c.voted
}

func (v *voting) PrepareSleep() bool {
	b := v.decides()
	return b != nil && b.PrepareSleep()
}

func (v *voting) EndSleep() {
	if b := v.decides(); b != nil {
		b.EndSleep()
	}
}

func (v *voting) quit(e *Engine, _ *fault.Fault) { e.dropWatch(v) }

// pursueBoard does what there is to do until it is decided whether all have the
// memory, and returns how far that is.
func (e *Engine) pursueBoard(c *Context) boardState {
	switch c.boardState {
	case boardUndecided:
		e.askBoard(c)
	case boardVoted:
		e.countVotes(c)
	}
	return c.boardState
}

// askBoard asks for the memory.
func (e *Engine) askBoard(c *Context) {
	c.boardState = boardAsked
	s := e.sharer()
	if s == nil || c.refused {
		e.absent(c)
		return
	}
	go func() {
		mem, x, err := e.common(c, s)
		e.mu.Lock()
		defer e.mu.Unlock()
		c.takeBoard(s, mem, x, err)
		e.cfg.Sleeper.Wake()
	}()
}

// takeBoard votes for memory that has come, or says that it has not.
func (c *Context) takeBoard(s transport.Sharer, mem []byte, x wire.ArenaRange, err error) {
	e := c.e
	switch {
	case c.boardState != boardAsked || e.closed || e.contexts[c.ID] != c:
		if err == nil { // nobody needs it any more
			e.leaveCommon(s, mem, x)
		}
	case err != nil:
		e.absent(c)
	default:
		b := newBoard(mem, c)
		b.heap = shmcoll.NewHeap(mem, c.Members, c.Rank, s.Preallocated())
		e.beginHeap(b.heap, x)
		e.keepLent(c, b.heap)
		e.vote(c, b)
	}
}

// UseGiven begins the use of memory that the agent has given to so many members of c, as
// those of a set: all that it has on this host. Who cannot use it tells the others in its first call. It
// comes once, before any call on c.
func (c *Context) UseGiven(set uint32, ranks int, x wire.ArenaRange) {
	e := c.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.node != nil {
		c = c.node.ctx
	}
	s := e.sharer()
	if c.boardState != boardUndecided || c.shareFrom != 0 || !c.mayShare() || c.Members.Len() != ranks || e.closed || s == nil || !s.Preallocated() {
		return // they ask
	}
	c.boardState = boardAsked
	e.mu.Unlock()
	mem, err := c.given(set, x)
	e.mu.Lock()
	if err != nil && c.boardState == boardAsked {
		c.boardState, c.refused = boardUndecided, true
		return
	}
	c.takeBoard(s, mem, x, err)
}

// vote votes for the memory that has come.
func (e *Engine) vote(c *Context, b *board) {
	c.voted, c.boardState = b, boardVoted
	b.StartAfter(shmcoll.Seq(c.tag) - 1)
	var proof [2]uint64
	if x := e.singleCopy(); x != nil {
		proof[0], proof[1] = x.Proof()
	}
	if in := c.inside; in != nil && in.coll != nil && in.coll.board == nil {
		b.TellElsewhere(shmcoll.Seq(c.tag))
	}
	if c.Rank == 0 && !b.inBlock && e.central() {
		b.TellCentral()
	}
	if b.Vote(proof, e.sharer().BellName()); b.AllVoted() {
		b.WakeVoters()
	}
}

// central reports whether operations of many ranks go without levels.
func (e *Engine) central() bool { return e.prog.Policy.PerCPU > 1 || !e.prog.Policy.OS }

// countVotes looks whether all have voted for the memory, or one who has not has
// left.
func (e *Engine) countVotes(c *Context) {
	b := c.voted
	if b.inBlock {
		switch fit, decided := e.blockFits(c, b); {
		case !decided:
			return
		case !fit:
			e.absent(c)
			return
		}
	} else if !b.AllVoted() {
		if c.leftWithout(b, shmcoll.VotedHere) {
			e.absent(c)
		}
		return
	}
	b.Decided()
	c.board, c.voted, c.boardState = b, nil, boardMade
	b.WakeVoters()
}

// leftWithout reports whether a rank has left that has not voted for something.
func (c *Context) leftWithout(b *board, vote uint32) bool {
	if c.faults == nil {
		return false
	}
	for s, f := range c.losses {
		if f.Class == fault.Left && b.Voted(int(s.rank())) < vote {
			return true
		}
	}
	return false
}

// absent decides against the memory: this rank does not get it, or another one
// does not. Who is beside it in the tree hears of that, and passes it on.
func (e *Engine) absent(c *Context) {
	if c.boardState == boardNever {
		return
	}
	c.withoutBoard()
	e.leaveVoted(c)
	e.dropLent(c)
	for r := range shmcoll.Near(c.Rank, c.Members.Len()) {
		if s := seat(r); c.lossOf(s) == nil {
			e.control(c.peer(s), c.wireKey(wire.TrafficColl, 0), kindAbsent, 0, 0)
		}
	}
}

// absentTold takes what absent tells.
func (e *Engine) absentTold(c *Context, p *Peer, env *envelope) {
	switch {
	case !c.mayShare():
	case c.boardState == boardMade: // it had voted
		e.protocol(p, foreign(p, env.key))
	default:
		e.absent(c)
	}
}

// readsDecided reports whether it is decided whether the ranks can read each
// other's memory.
func (e *Engine) readsDecided(c *Context) bool {
	b := c.board
	switch c.readState {
	case readsUndecided:
		if !b.AllVoted() && !c.leftWithout(b, shmcoll.VotedHere) {
			return false // what proves that it can be read is not there yet
		}
		c.readState = readsAsked
		if e.singleCopy() == nil || !b.AllVoted() {
			b.VoteReads(false)
		} else {
			go e.reachAll(c, b)
		}
	case readsKnown:
		return true
	}
	all, no := b.ReadsVoted()
	all = all && b.regions.memories != nil // whatever the others say, this rank has to reach them
	if no = no || c.leftWithout(b, shmcoll.VotedReads); !no && !all {
		return false
	}
	c.readState = readsKnown
	c.reads.Store(!no)
	if !no {
		b.regions.singleCopy = e.singleCopy()
		b.Read(&b.regions)
		b.direct = &flat.NeighborAllgathervDirect
	}
	b.WakeNear()
	return true
}

// reachAll finds out whether this rank can read the memory of all, and votes. The
// lock is not held.
func (e *Engine) reachAll(c *Context, b *board) {
	memories := make([]*Memory, b.Size())
	ok := true
	for i := range memories {
		if proc := c.Members.At(i); ok && i != c.Rank {
			e.mu.Lock()
			proof := [2]uint64{}
			if ok = c.board == b && !e.closed; ok {
				proof = b.Proof(i)
			}
			e.mu.Unlock()
			if ok {
				var err error
				memories[i], err = e.ReachMemory(proc, proof)
				ok = err == nil
			}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.board != b || e.closed {
		return
	}
	if ok {
		b.regions.memories = memories
	}
	b.VoteReads(ok)
	b.WakeNear()
	e.cfg.Sleeper.Wake()
}

// leaveVoted ends the use of memory of which it is not known whether all have it.
func (e *Engine) leaveVoted(c *Context) {
	if b := c.voted; b != nil {
		c.voted = nil
		e.leaveBoard(c, b)
	}
}

// leaveBoard ends the use of a board's memory.
func (e *Engine) leaveBoard(c *Context, b *board) {
	if b.inBlock {
		b.heap.LeaveBlock(b.at, c.Rank)
	}
	e.leaveHeap(b.heap)
}

// dropBoard ends this rank's use of its board. The memory is that of all who use
// it, and ends with the last of them.
func (e *Engine) dropBoard(c *Context) {
	e.leaveVoted(c)
	if b := c.board; b != nil {
		if c.board = nil; c.line != nil {
			c.line.open = false
		}
		e.leaveBoard(c, b)
	}
	c.withoutBoard()
	c.readState = readsKnown
}

// withoutBoard makes operations count on no board.
func (c *Context) withoutBoard() {
	c.boardState = boardNever
	c.room.Store(0)
	c.reads.Store(false)
}

// leaveBoards is dropBoard of all communicators, when the process ends. A
// goroutine that is still inside an operation does it when it comes out.
func (e *Engine) leaveBoards() {
	for _, c := range e.contexts {
		if c.inside == nil {
			e.dropBoard(c)
		}
	}
	if c := e.lender; c != nil {
		e.dropLent(c)
	}
}
