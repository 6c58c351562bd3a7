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

// The ranks of a communicator decide once whether they share memory, in the first blocking
// call that could use it. Each rank that needs to know asks for the memory, and votes in it
// when it has it. A rank that does not get the memory tells the others. Each rank does one
// or the other, once. So either all have voted, or one has not and never will: every rank
// that waits comes to the same answer.
//
// Whether all can read each other's memory is decided in the same way, in the first call
// that could use it, by votes in the area.

type areaState uint8

const (
	areaUndecided areaState = iota // this rank has not needed the area yet
	areaAsked                      // this rank has asked for the memory
	areaVoted                      // this rank has the memory and has voted
	areaMade                       // all ranks have the memory
	areaNever                      // a rank does not get the memory
)

type readState uint8

const (
	readsUndecided readState = iota // this rank has not needed it yet
	readsAsked                      // this rank finds out whether it can read the others' memory
	readsKnown                      // the answer is in Context.reads
)

func (c *Context) mayShare() bool {
	n := c.Members.Len()
	return n > 1 && n <= shmcoll.MaxRanks && c.Remote.Len() == 0
}

// offerArea sets what operations may rely on until the decision. It is the same on all
// ranks.
func (c *Context) offerArea() {
	if !c.mayShare() {
		return
	}
	n := c.Members.Len()
	c.areaState = areaUndecided
	c.room.Store(int64(shmcoll.SharedRoom(n)))
	if n <= shmcoll.MaxReadRanks {
		c.readState = readsUndecided
		c.reads.Store(true)
	}
}

// lateShare is the number of the first call that asks for memory on a communicator that may
// be short-lived. Setting up takes 1 to 5 ms, because all ranks wait for the agent and for
// each other; a call by messages takes 10 to 100 us.
const lateShare = 32

// settleArea begins a call that relies on the undecided area. It waits for the decision and
// chooses the algorithm again. On a fault the call is given up.
func (e *Engine) settleArea(c *Context, a *CollArgs, tag int32) *fault.Fault {
	v := &voting{c: c, tag: tag, reads: a.Alg.Reads}
	f := c.startFault(a, tag, a.Tag.numbered())
	if f == nil && !v.over(e) {
		r := e.newRequest(reqOther)
		r.op = a.Op
		r.ctx = c
		r.user = a.User
		r.rank = callreg.NoPeer
		r.tag = tag
		r.hang()
		r.rests = e.prog.Policy.HeavilyOversubscribed() // other processes may have to be started first
		v.req, c.blocking = r, r
		e.addWatch(v)
		if f = e.waitOne(r); f == nil {
			f = c.givenUp // after the decision
		}
		e.dropWatch(v)
		e.freeRequest(r)
	}
	if f != nil {
		if f.Class == fault.Cancelled { // no rank can finish the call without this one
			e.revoke(c)
		}
		e.refuseColl(c, a, tag, f)
		return f
	}
	if a.Args.Reads = c.reads.Load(); c.area == nil {
		a.Args.Shared = 0
	}
	if a.Alg.Reads && !a.Args.Reads || a.Args.Shared == 0 {
		a.choose()
	}
	return nil
}

// choose chooses the algorithm again. It passes a copy of the arguments on: the originals
// would be on the heap in every call.
func (a *CollArgs) choose() {
	args := a.Args
	a.Alg = a.Table.Select(&args, int(a.Unit), a.Commutative)
	a.Args.Segment = args.Segment
}

// voting is the hook of a call that waits for a decision.
type voting struct {
	c     *Context
	tag   int32
	reads bool
	req   *Request
}

// over reports whether what the call needs is decided.
func (v *voting) over(e *Engine) bool {
	switch e.pursueArea(v.c) {
	case areaMade:
		return !v.reads || e.readsDecided(v.c)
	case areaNever:
		return true
	}
	return false
}

// Step implements processHook.
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

// decides returns the memory in which the ranks vote, or nil if it has not come.
func (v *voting) decides() *area {
	if v.c.area != nil {
		return v.c.area
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

// pursueArea advances the decision whether all ranks have the memory, and returns its
// state.
func (e *Engine) pursueArea(c *Context) areaState {
	switch c.areaState {
	case areaUndecided:
		e.askArea(c)
	case areaVoted:
		e.countVotes(c)
	}
	return c.areaState
}

// askArea asks for the memory.
func (e *Engine) askArea(c *Context) {
	c.areaState = areaAsked
	s := e.sharer()
	if s == nil || c.refused {
		e.absent(c)
		return
	}
	go func() {
		mem, x, err := e.common(c, s)
		e.mu.Lock()
		defer e.mu.Unlock()
		c.takeArea(s, mem, x, err)
		e.cfg.Sleeper.Wake()
	}()
}

// takeArea votes for memory that has come, or tells the others that it has not.
func (c *Context) takeArea(s transport.Sharer, mem []byte, x wire.ArenaRange, err error) {
	e := c.e
	switch {
	case c.areaState != areaAsked || e.closed || e.contexts[c.ID] != c:
		if err == nil { // no call needs it any more
			e.leaveCommon(s, mem, x)
		}
	case err != nil:
		e.absent(c)
	default:
		b := newArea(mem, c)
		b.heap = shmcoll.NewHeap(mem, c.Members, c.Rank, s.Preallocated())
		e.beginHeap(b.heap, x)
		e.keepLent(c, b.heap)
		e.vote(c, b)
	}
}

// UseGiven begins the use of memory that the agent has given to the members of a set. The
// set has ranks members, all on this host, and c has the same. A rank that cannot use it
// tells the others in its first call. The caller must call it once, before any call on c.
func (c *Context) UseGiven(set uint32, ranks int, x wire.ArenaRange) {
	e := c.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.host != nil {
		c = c.host.ctx
	}
	s := e.sharer()
	if c.areaState != areaUndecided || c.shareFrom != 0 || !c.mayShare() || c.Members.Len() != ranks || e.closed || s == nil || !s.Preallocated() {
		return // the ranks ask for memory themselves
	}
	c.areaState = areaAsked
	e.mu.Unlock()
	mem, err := c.given(set, x)
	e.mu.Lock()
	if err != nil && c.areaState == areaAsked {
		c.areaState, c.refused = areaUndecided, true
		return
	}
	c.takeArea(s, mem, x, err)
}

// vote votes for the memory that has come.
func (e *Engine) vote(c *Context, b *area) {
	c.voted, c.areaState = b, areaVoted
	b.StartAfter(shmcoll.Seq(c.tag) - 1)
	var proof [2]uint64
	if x := e.singleCopy(); x != nil {
		proof[0], proof[1] = x.Proof()
	}
	if in := c.blocking; in != nil && in.coll != nil && in.coll.area == nil {
		b.TellElsewhere(shmcoll.Seq(c.tag))
	}
	if c.Rank == 0 && !b.inBlock && e.central() {
		b.TellCentral()
	}
	if b.Vote(proof, e.sharer().BellName()); b.AllVoted() {
		b.WakeVoters()
	}
}

// central reports whether operations of many ranks work without a tree.
func (e *Engine) central() bool { return e.prog.Policy.PerCPU > 1 || !e.prog.Policy.OS }

// countVotes checks whether all ranks have voted for the memory, or a rank that has not
// voted has left.
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
	c.area, c.voted, c.areaState = b, nil, areaMade
	b.WakeVoters()
}

// leftWithout reports whether a rank has left without voting for something.
func (c *Context) leftWithout(b *area, vote uint32) bool {
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

// absent decides against the memory: this rank or another one does not get it. It tells
// this rank's neighbours in the tree, and they pass it on.
func (e *Engine) absent(c *Context) {
	if c.areaState == areaNever {
		return
	}
	c.withoutArea()
	e.leaveVoted(c)
	e.dropLent(c)
	for r := range shmcoll.Near(c.Rank, c.Members.Len()) {
		if s := member(r); c.lossOf(s) == nil {
			e.control(c.peer(s), c.wireKey(wire.TrafficColl, 0), kindAbsent, 0, 0)
		}
	}
}

// absentTold handles the message of absent.
func (e *Engine) absentTold(c *Context, p *Peer, env *envelope) {
	switch {
	case !c.mayShare():
	case c.areaState == areaMade: // the sender had voted
		e.protocol(p, foreign(p, env.key))
	default:
		e.absent(c)
	}
}

// readsDecided reports whether it is decided that the ranks can, or cannot, read each
// other's memory.
func (e *Engine) readsDecided(c *Context) bool {
	b := c.area
	switch c.readState {
	case readsUndecided:
		if !b.AllVoted() && !c.leftWithout(b, shmcoll.VotedHere) {
			return false // the proof that lets others read is not there yet
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
	all = all && b.regions.memories != nil // whatever the others say, this rank must have reached them
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

// reachAll finds out whether this rank can read the memory of all ranks, and votes. It is
// called without the lock.
func (e *Engine) reachAll(c *Context, b *area) {
	memories := make([]*Memory, b.Size())
	ok := true
	for i := range memories {
		if proc := c.Members.At(i); ok && i != c.Rank {
			e.mu.Lock()
			proof := [2]uint64{}
			if ok = c.area == b && !e.closed; ok {
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
	if c.area != b || e.closed {
		return
	}
	if ok {
		b.regions.memories = memories
	}
	b.VoteReads(ok)
	b.WakeNear()
	e.cfg.Sleeper.Wake()
}

// leaveVoted ends the use of memory before the decision.
func (e *Engine) leaveVoted(c *Context) {
	if b := c.voted; b != nil {
		c.voted = nil
		e.leaveArea(c, b)
	}
}

// leaveArea ends the use of an area's memory.
func (e *Engine) leaveArea(c *Context, b *area) {
	if b.inBlock {
		b.heap.LeaveBlock(b.at, c.Rank)
	}
	e.leaveHeap(b.heap)
}

// dropArea ends this rank's use of its area. The memory ends with its last user.
func (e *Engine) dropArea(c *Context) {
	e.leaveVoted(c)
	if b := c.area; b != nil {
		if c.area = nil; c.queue != nil {
			c.queue.open = false
		}
		e.leaveArea(c, b)
	}
	c.withoutArea()
	c.readState = readsKnown
}

// withoutArea makes operations rely on no area.
func (c *Context) withoutArea() {
	c.areaState = areaNever
	c.room.Store(0)
	c.reads.Store(false)
}

// leaveAreas is dropArea for all communicators when the process ends. A goroutine that is
// still inside an operation does it when it comes out.
func (e *Engine) leaveAreas() {
	for _, c := range e.contexts {
		if c.blocking == nil {
			e.dropArea(c)
		}
	}
	if c := e.lender; c != nil {
		e.dropLent(c)
	}
}
