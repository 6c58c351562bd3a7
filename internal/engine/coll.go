// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sort"

	"gompi/collectives"
	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/base/list"
	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/data/kernel"
	"gompi/internal/engine/shmcoll"
)

// CollArgs are the arguments of a collective call. In, Out and what Args
// refers to belong to the library until the collective is complete.
type CollArgs struct {
	shmcoll.Call
	Op    fault.Call
	Alg   *collectives.Algorithm
	Table Selector // chooses another Alg if the ranks share no memory
	// InBlocks and OutBlocks replace In and Out where each block has a buffer
	// of its own (the w-forms): block i is elements [Displs[i], Displs[i]+Counts[i])
	// by Args.InCounts and InDispls or OutCounts and OutDispls, which put
	// blocks one after the other.
	InBlocks, OutBlocks []buffer.Buf
	KernelName          string // of the operation of Kernel, for messages
	Commutative         bool
	Tag                 CollTag
	User                context.Context
	// Keep, if it is not nil, holds memory that Args refers to, and hears when
	// the library needs it no more.
	Keep Keeper
	// Offer, if it is not nil, is a word of In in whose upper half the call puts
	// what Context offers (Engine.Offer) in the moment in which it begins.
	Offer *uint64
}

// Parts are the parts of In and Out that the call reads and writes; not of the w-forms.
func (a *CollArgs) Parts() (in, out []buffer.Buf) {
	x := &a.Args
	inCounts, inDispls, outCounts, outDispls := x.InCounts, x.InDispls, x.OutCounts, x.OutDispls
	switch x.Op {
	case collectives.OpScatterv:
		inCounts, inDispls = x.Counts, x.Displs
	case collectives.OpGatherv, collectives.OpAllgatherv:
		outCounts, outDispls = x.Counts, x.Displs
	}
	return a.In.Parts(inCounts, inDispls, a.Unit), a.Out.Parts(outCounts, outDispls, a.Unit)
}

// Selector chooses an algorithm that can do a call: selection.Table.
type Selector interface {
	Select(a *collectives.Args, elemBytes int, commutative bool) *collectives.Algorithm
}

// Keeper owns memory of a call's arguments. Release is called once, with the
// engine locked.
type Keeper interface{ Release() }

func (a *CollArgs) release() {
	if a.Keep != nil {
		a.Keep.Release()
	}
}

// coll is a collective in progress: a cursor in its schedule.
type coll struct {
	req  *Request
	ctx  *Context
	alg  *collectives.Algorithm
	args collectives.Args
	bufs [3]buffer.Buf // by collectives.Buffer
	unit int64
	// blocks stand for In and Out of the w-forms, else nil.
	blocks [2][]buffer.Buf

	kernel      kernel.Func
	commutative bool
	table       Selector // of a call in a line: see CollArgs

	steps   []collectives.Step // of the current round; memory reused
	started []*Request         // of steps that took time; memory reused
	round   int                // rounds started
	rounds  int
	pending int // steps under way, and one while a round is being started
	tag     int32
	fault   *fault.Fault
	tell    bool // the others do not know of the fault
	queued  bool // in the ready list
	scratch []byte
	strided buffer.Buf   // Out of a reduction, which is done in packed memory; else empty
	part    *Partitioned // of which this is the parent only
	pair    bool         // this is the parent of a pair only
	keep    Keeper
	board   *board // it runs on that, not by alg
	line    *line  // it runs there, by turn, or waits there until it runs by alg
	turn    shmcoll.Turn

	atCtx list.Link[coll] // in Context.colls
	after *coll           // ready, or free
}

// schedules are the collectives of a process that go by messages, or end as those do.
type schedules struct {
	process *process
	reqs    *requests
	net     *network
	msgs    *matching
	sends   *sends
	recvs   *receives
	up      interface {
		// leaveOp and leaveLine end what a collective has in shared memory.
		leaveOp(k *coll)
		leaveLine(k *coll)
	}

	colls collList
}

// collList holds the collectives whose round has ended, and used ones.
type collList struct {
	ready *coll
	free  *coll
}

// maxKeptScratch is how much scratch memory a recycled collective keeps.
const maxKeptScratch = 1 << 20

// beginColl starts the collective with that tag.
func (sc *schedules) beginColl(c *Context, a *CollArgs, tag int32, pending bool) *Request {
	r := sc.prepareColl(c, a, tag, pending)
	if r.coll != nil {
		sc.advance(r.coll)
	}
	return r
}

// prepareColl is beginColl without a step. The request has no coll if it failed
// at once.
func (sc *schedules) prepareColl(c *Context, a *CollArgs, tag int32, pending bool) *Request {
	r := sc.reqs.newRequest(reqColl)
	r.op, r.ctx, r.user, r.rank, r.buf = a.Op, c, a.User, callreg.NoPeer, a.In
	if r.buf.Bytes() == 0 {
		r.buf = a.Out
	}
	r.tag = tag
	if f := c.startFault(a, tag, pending); f != nil {
		sc.refuseColl(c, a, tag, f)
		r.fail(f)
		sc.reqs.complete(r)
		return r
	}
	k := sc.newColl()
	r.coll = k
	k.req, k.ctx, k.alg, k.args, k.tag = r, c, a.Alg, a.Args, tag
	k.kernel, k.commutative, k.unit, k.keep = a.Kernel, a.Commutative, a.Unit, a.Keep
	k.bufs[collectives.In], k.bufs[collectives.Out] = a.In, a.Out
	k.blocks[collectives.In], k.blocks[collectives.Out] = a.InBlocks, a.OutBlocks
	k.table = a.Table
	need := int64(0)
	if !a.Alg.Shared {
		need = k.schedule()
	}
	packed := k.packed()
	if int64(cap(k.scratch)) < need+packed {
		k.scratch = make([]byte, need+packed)
	}
	k.bufs[collectives.Scratch] = buffer.Of(k.scratch[:need])
	if packed > 0 {
		k.packAll(k.scratch[need : need+packed])
	}
	c.colls.Add(&k.atCtx, k)
	return r
}

// schedule begins with the rounds of k's algorithm, and returns how many bytes of
// scratch memory they need.
func (k *coll) schedule() (scratch int64) {
	k.rounds = k.alg.Rounds(&k.args)
	return k.alg.Scratch(&k.args) * k.unit
}

func (sc *schedules) newColl() *coll {
	k := sc.colls.free
	if k == nil {
		return new(coll)
	}
	sc.colls.free = k.after
	k.after = nil
	return k
}

// startFault is what stands against starting a collective, or, if it is pending,
// against going on: one that NumberColl has numbered, or the next part of a call.
func (c *Context) startFault(a *CollArgs, tag int32, pending bool) *fault.Fault {
	if f := c.collFault(tag, pending); f != nil || pending {
		return f
	}
	if c.faults == nil {
		return nil
	}
	for s, f := range c.losses {
		if f.Class == fault.Left && c.awaitsMe(a, s) {
			return faultAt(f, s)
		}
	}
	return nil
}

// collFault is startFault of a collective of which others may have done their
// part.
func (c *Context) collFault(tag int32, pending bool) *fault.Fault {
	if c.whole != nil {
		if f := c.whole.partFault(); f != nil {
			return f
		}
	}
	if c.faults == nil && !c.e.closed {
		return nil
	}
	f := c.opFault()
	if pending {
		f = c.stepFault()
	}
	if f != nil {
		return f
	}
	t := c.faults
	if t.failed > 0 {
		return c.lastDeath()
	}
	if f := t.takeEarly(tag); f != nil {
		return f
	}
	if t.cut > 0 {
		return c.unreached()
	}
	return nil
}

// awaitsMe reports whether a rank cannot have done its part of a collective
// that this one has not begun: if it has left, it never will.
func (c *Context) awaitsMe(a *CollArgs, s seat) bool {
	g := &a.Args
	if c.inter() || g.Op != collectives.OpBarrier && a.In.Bytes() == 0 && a.Out.Bytes() == 0 {
		return false
	}
	switch g.Op {
	case collectives.OpBarrier, collectives.OpAllreduce, collectives.OpAllgather, collectives.OpAlltoall,
		collectives.OpReduceScatterBlock:
		return true
	case collectives.OpBcast, collectives.OpScatter:
		return c.Rank == g.Root
	case collectives.OpReduce, collectives.OpGather:
		return int(s.rank()) == g.Root
	case collectives.OpScan, collectives.OpExscan:
		return c.Rank < int(s.rank())
	}
	return false
}

// refuseColl gives up a collective that has not begun. That a member has ended
// everybody hears, but not what that means for this call.
func (sc *schedules) refuseColl(c *Context, a *CollArgs, tag int32, f *fault.Fault) {
	sc.msgs.dropTag(c, tag)
	a.release()
	if f.Class == fault.Left || f.Class == fault.Unreachable {
		sc.net.tell(c, kindCollFail, wire.TrafficColl, tag, culprit(f))
	}
}

// advance runs k until it has to wait or is complete.
func (sc *schedules) advance(k *coll) {
	for k.fault == nil {
		if k.round > 0 {
			sc.local(k)
		}
		if k.round == k.rounds {
			break
		}
		k.steps, k.started = k.alg.Round(&k.args, k.round, k.steps[:0]), k.started[:0]
		k.round++
		k.pending = 1
		for i := range k.steps {
			if s := &k.steps[i]; s.Kind == collectives.Recv {
				sc.stepRecv(k, s)
			}
		}
		for i := range k.steps {
			if s := &k.steps[i]; s.Kind == collectives.Send {
				sc.stepSend(k, s)
			}
		}
		k.pending--
		if k.pending > 0 {
			return
		}
	}
	if k.pending == 0 {
		sc.finish(k)
	}
}

// ref is the memory that a schedule refers to.
func (k *coll) ref(r collectives.Ref) buffer.Buf {
	if r.Buf != collectives.Scratch && k.blocks[r.Buf] != nil {
		return k.inBlock(r)
	}
	return k.bufs[r.Buf].Part(r.Off*k.unit, r.Len*k.unit)
}

// inBlock is ref of a w-form. No reference crosses blocks.
func (k *coll) inBlock(r collectives.Ref) buffer.Buf {
	displs := k.args.InDispls
	if r.Buf == collectives.Out {
		displs = k.args.OutDispls
	}
	// The last block that begins at or before Off; earlier ones that begin
	// there are empty.
	i := sort.Search(len(displs), func(i int) bool { return displs[i] > r.Off }) - 1
	return k.blocks[r.Buf][i].Part((r.Off-displs[i])*k.unit, r.Len*k.unit)
}

func (sc *schedules) stepRecv(k *coll, s *collectives.Step) {
	if k.fault != nil {
		return
	}
	k.pending++
	r := sc.reqs.newRequest(reqRecv)
	r.op, r.ctx, r.buf, r.rank, r.tag, r.parent = k.req.op, k.ctx, k.ref(s.A), s.Peer, k.tag, k
	sc.recvs.post(r, k.ctx.keys[k.ctx.stepPlane(s.Remote)].With(s.Peer, k.tag))
	k.note(r)
}

func (sc *schedules) stepSend(k *coll, s *collectives.Step) {
	if k.fault != nil {
		return
	}
	pl := k.ctx.stepPlane(s.Remote)
	p, f := k.ctx.reach(seatOf(pl, s.Peer))
	if f != nil {
		sc.abort(k, f, true)
		return
	}
	a := SendArgs{Op: k.req.op, Buf: k.ref(s.A), Dest: s.Peer, Tag: k.tag, Plane: pl}
	if sc.sends.sendNow(k.ctx, p, &a) {
		return
	}
	k.pending++
	k.note(sc.sends.startSend(k.ctx, p, &a, k))
}

// note remembers the request of a step, unless that has ended already.
func (k *coll) note(r *Request) {
	if r.parent == k && !r.done {
		k.started = append(k.started, r)
	}
}

// local runs the reductions and copies of the round that has ended.
func (sc *schedules) local(k *coll) {
	for i := range k.steps {
		s := &k.steps[i]
		switch s.Kind {
		case collectives.Copy:
			sc.net.pack.copy(k.ref(s.B), k.ref(s.A))
		case collectives.Reduce:
			k.reduce(k.ref(s.A), k.ref(s.B), s.A.Len, s.Left)
		}
	}
}

// reduce does b = a op b (left) or b = b op a, of n elements.
func (k *coll) reduce(a, b buffer.Buf, n int64, left bool) {
	if n == 0 {
		return
	}
	if left || k.commutative {
		k.kernel(b.Addr(), a.Addr(), b.Addr(), n)
	} else {
		k.kernel(b.Addr(), b.Addr(), a.Addr(), n)
	}
}

// roundEnded lets the next call of progress go on with k. A goroutine that
// gives an operation up does not poll, and everybody else may be asleep.
func (sc *schedules) roundEnded(k *coll) {
	if k.pending != 0 || k.queued {
		return
	}
	k.queued = true
	k.after = sc.colls.ready
	sc.colls.ready = k
	sc.process.prog.Wake()
}

func (sc *schedules) runReady() {
	k := sc.colls.ready
	sc.colls.ready = k.after
	k.after = nil
	k.queued = false
	sc.advance(k)
}

// abort fails k; it ends when no other process touches its buffers.
func (sc *schedules) abort(k *coll, f *fault.Fault, tell bool) {
	if k.fault != nil {
		return
	}
	k.fault, k.tell = f, tell
	sc.withdrawSteps(k)
	sc.roundEnded(k)
}

// withdrawSteps gives up the steps of k that are under way.
func (sc *schedules) withdrawSteps(k *coll) {
	for _, r := range k.started {
		if r.parent == k && !r.done { // else it has ended
			sc.sends.withdraw(r, k.fault)
		}
	}
}

// finish completes the call and recycles k.
func (sc *schedules) finish(k *coll) {
	r := k.req
	k.atCtx.Remove()
	switch {
	case k.board != nil:
		sc.up.leaveOp(k)
	case k.line != nil:
		sc.up.leaveLine(k)
	}
	if k.fault == nil && k.strided.Bytes() > 0 {
		sc.net.pack.copy(k.strided, k.bufs[collectives.Out])
	}
	if k.fault != nil {
		r.fail(k.fault)
		if k.tell && k.fault.Class != fault.ProcFailed { // of a death everybody hears
			sc.net.tell(k.ctx, kindCollFail, wire.TrafficColl, k.tag, culprit(k.fault))
		}
		sc.msgs.dropTag(k.ctx, k.tag)
	}
	if k.keep != nil {
		k.keep.Release()
	}
	r.coll = nil
	sc.freeColl(k)
	sc.reqs.complete(r)
}

func (sc *schedules) freeColl(k *coll) {
	scratch, steps, started := k.scratch, k.steps, k.started
	clear(started)
	if cap(scratch) > maxKeptScratch {
		scratch = nil
	}
	*k = coll{scratch: scratch, steps: steps[:0], started: started[:0], after: sc.colls.free}
	sc.colls.free = k
}

// packed is how many bytes packAll needs: kernels work on elements that stand
// side by side.
func (k *coll) packed() (n int64) {
	if k.kernel == nil {
		return 0
	}
	for _, b := range k.bufs[:collectives.Scratch] {
		if b.Strided() {
			n += b.Bytes()
		}
	}
	return n
}

// packAll puts packed copies in the place of strided buffers. Out is copied
// too: an operation in place reads it, and some leave parts of it alone.
func (k *coll) packAll(m []byte) {
	if out := k.bufs[collectives.Out]; out.Strided() {
		k.strided = out
	}
	for i := range k.bufs[:collectives.Scratch] {
		b := &k.bufs[i]
		if b.Strided() {
			part := m[:b.Bytes()]
			b.Pack(part, 0)
			*b, m = buffer.Of(part), m[b.Bytes():]
		}
	}
}

// culprit is what a rank that gives up a collective tells the others in aux:
// 1 and the rank of the process that has left, or 0.
func culprit(f *fault.Fault) uint32 {
	if f.Class != fault.Left || f.Peer < 0 {
		return 0
	}
	aux := uint32(f.Peer) + 1
	if f.Local {
		aux |= culpritLocal
	}
	return aux
}
