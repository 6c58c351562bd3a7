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
	// InBlocks and OutBlocks replace In and Out in the w-forms, in which each block has a
	// buffer of its own. Block i holds elements [Displs[i], Displs[i]+Counts[i]) by
	// Args.InCounts and InDispls, or OutCounts and OutDispls; these put the blocks one
	// after the other.
	InBlocks, OutBlocks []buffer.Buf
	KernelName          string // of the operation of Kernel, for error messages
	Commutative         bool
	Tag                 CollTag
	User                context.Context
	// Keep, if not nil, owns memory that Args refers to. It is called when the library
	// needs that memory no more.
	Keep Keeper
	// Offer, if not nil, is a word inside In. When the call begins, it stores the block
	// that Context offers (Engine.Offer) in the upper half.
	Offer *uint64
}

// Parts returns the parts of In and Out that the call reads and writes. It does not serve
// the w-forms.
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

// coll is a collective in progress: a cursor in its schedule. It also serves as
// the parent of a partitioned operation or a send-receive.
type coll struct {
	// Arguments.
	req  *Request
	ctx  *Context
	alg  *collectives.Algorithm
	args collectives.Args
	bufs [3]buffer.Buf // by collectives.Buffer
	unit int64
	// blocks replace In and Out in the w-forms, else nil.
	blocks [2][]buffer.Buf

	kernel      kernel.Func
	commutative bool
	table       Selector // of a call in a collQueue: see CollArgs

	// The current round. Invariant: pending is the number of steps under way,
	// and one more while a round is being started.
	steps       []collectives.Step // memory reused
	started     []*Request         // of steps that took time; memory reused
	round       int                // rounds started
	rounds      int
	pending     int
	tag         int32
	fault       *fault.Fault
	tell        bool // the others do not know of fault
	queued      bool // in the ready list
	scratch     []byte
	strided     buffer.Buf   // Out of a reduction, which works on a packed copy; else empty
	partitioned *Partitioned // this is its parent only
	sendRecv    bool         // this is the parent of a send-receive only
	keep        Keeper

	// Shared memory: area runs the call in place of alg; or queue runs it by
	// turn, or keeps it until it may run by alg.
	area  *area
	queue *collQueue
	turn  shmcoll.Turn

	atCtx list.Link[coll] // in Context.colls
	after *coll           // in the ready list or the free list
}

// schedules are the collectives of a process that go by messages, and the ends
// of all others.
type schedules struct {
	process *process
	reqs    *requests
	net     *network
	msgs    *matching
	sends   *sends
	recvs   *receives
	up      interface {
		// leaveOp and leaveQueue end what a collective has in shared memory.
		leaveOp(k *coll)
		leaveQueue(k *coll)
	}

	colls collList
}

// collList holds collectives whose round has ended, and recycled ones.
type collList struct {
	ready *coll
	free  *coll
}

// maxKeptScratch is how much scratch memory a recycled collective keeps.
const maxKeptScratch = 1 << 20

// beginColl starts the collective with a tag.
func (sc *schedules) beginColl(c *Context, a *CollArgs, tag int32, pending bool) *Request {
	r := sc.prepareColl(c, a, tag, pending)
	if r.coll != nil {
		sc.advance(r.coll)
	}
	return r
}

// prepareColl is beginColl without the first step. The request has no coll if it has failed
// already.
func (sc *schedules) prepareColl(c *Context, a *CollArgs, tag int32, pending bool) *Request {
	r := sc.reqs.newRequest(reqColl)
	r.op = a.Op
	r.ctx = c
	r.user = a.User
	r.rank = callreg.NoPeer
	r.buf = a.In
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
	k.req = r
	k.ctx = c
	k.alg = a.Alg
	k.args = a.Args
	k.tag = tag
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

// schedule prepares the rounds of k's algorithm. It returns how many bytes of scratch
// memory they need.
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

// startFault returns the fault that forbids to start a collective. If pending is set, the
// call goes on and does not start: NumberColl has numbered it, or this is its next part.
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

// collFault is startFault of a collective in which other ranks may have done their part
// already.
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

// awaitsMe reports whether rank s cannot have done its part of a collective before this
// rank does its own. If s has left, it never will.
func (c *Context) awaitsMe(a *CollArgs, s member) bool {
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

// refuseColl gives up a collective that has not begun. The control plane tells all ranks
// that a member has ended, but not what that means for this call.
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

// ref returns the memory that a schedule refers to.
func (k *coll) ref(r collectives.Ref) buffer.Buf {
	if r.Buf != collectives.Scratch && k.blocks[r.Buf] != nil {
		return k.inBlock(r)
	}
	return k.bufs[r.Buf].Part(r.Off*k.unit, r.Len*k.unit)
}

// inBlock is ref for a w-form. No reference crosses blocks.
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
	p, f := k.ctx.reach(memberOf(pl, s.Peer))
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

// note keeps the request of a step, unless it has ended already.
func (k *coll) note(r *Request) {
	if r.parent == k && !r.done {
		k.started = append(k.started, r)
	}
}

// local runs the reductions and copies of the round that has just ended.
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

// roundEnded lets the next call of progress continue k. It must not do so itself: a
// goroutine that gives an operation up does not poll, and all others may sleep.
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

// abort fails k. It ends when no other process touches its buffers any more.
func (sc *schedules) abort(k *coll, f *fault.Fault, tell bool) {
	if k.fault != nil {
		return
	}
	k.fault, k.tell = f, tell
	sc.withdrawSteps(k)
	sc.roundEnded(k)
}

// withdrawSteps withdraws the steps of k that have not ended.
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
	case k.area != nil:
		sc.up.leaveOp(k)
	case k.queue != nil:
		sc.up.leaveQueue(k)
	}
	if k.fault == nil && k.strided.Bytes() > 0 {
		sc.net.pack.copy(k.strided, k.bufs[collectives.Out])
	}
	if k.fault != nil {
		r.fail(k.fault)
		if k.tell && k.fault.Class != fault.ProcFailed { // the control plane tells all ranks of a death
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

// packed returns how many bytes packAll needs: kernels work on contiguous elements.
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

// packAll replaces strided buffers by packed copies. It copies Out as well: an operation in
// place reads it, and some operations leave parts of it unchanged.
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

// culprit returns what a rank that gives up a collective tells the others in aux: 1 + the
// rank of the process that has left, or 0.
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
