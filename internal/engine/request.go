// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"

	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/base/list"
	"gompi/internal/control/callreg"
	"gompi/internal/data/dtype"
	"gompi/internal/engine/match"
	"gompi/transport"
)

type reqKind uint8

const (
	reqFree reqKind = iota
	reqSend
	reqRecv
	reqColl
	reqOther // completed from outside: Engine.NewOther
	reqPart  // a start of a partitioned operation
	reqPair  // a send and a receive: Engine.Pair
	reqDone  // complete from the start: Engine.NewDone
)

// What a send still waits for.
const (
	pendLeave     = 1 << iota // the transport still reads the payload
	pendAck                   // the receiver's Ack (synchronous mode)
	pendBulk                  // the end of the bulk transfer, or Refuse
	pendQueue                 // its place in the peer's queue
	pendCancel                // the receiver's answer to Cancel
	pendStream                // its turn among the streams, and the end of its own
	pendPeerState             // the control plane's word about the peer; receives wait for it, too
	pendReceipt               // of a receive: the answer to its sender must leave
)

// Request is one operation in progress. Requests are recycled: a caller that
// keeps one across calls must keep its generation too (Handle).
type Request struct {
	posted match.Posted[Request]

	// Identity. The generation changes when the request is recycled.
	e     *Engine // of the pool; immutable
	index uint32  // in the pool; immutable
	gen   uint32

	// State. done is set once, by complete; pend is 0 from then on.
	kind      reqKind
	done      bool
	pend      uint8 // pendLeave and others: what a send still waits for
	flags     uint8 // flagSync and others: those of the envelope
	detach    bool  // no goroutine will wait: it is freed when it is done
	apart     bool  // made by NewApart: Retire does not wait for it
	owned     bool  // a goroutine polls for it without a waiter
	bulk      bool  // a receive that was matched and is being transferred
	stalled   bool  // a send in Peer.stalled
	rests     bool  // the wait for it may sleep at once: other processes must be started
	inspected bool  // Inspect has asked for a call before its end is told

	// Arguments of the operation.
	op   fault.Call
	ctx  *Context
	peer *Peer
	buf  buffer.Buf
	user context.Context // gives up the operation; nil: never
	rank int32           // of the peer: destination or source, may be Any
	tag  int32

	// A stream: the bytes that have passed, the bytes in all and, on the
	// receiver, the sender's request. Invariant: passed <= want.
	passed, want int64
	from         uint32

	// The outcome, and the waiter or operation that hears of it.
	status Status
	reason *fault.Fault // why a send is being withdrawn
	parent *coll        // the operation of which this is a step or a part; nil: none
	waiter *waiter      // the goroutine that waits; nil: none
	coll   *coll        // of reqColl, reqPart and reqPair

	// Links: in the free list, a sendQueue or a streamList, and in the lists of
	// its peer (Peer.ops) and its context (Context.ops, anys or from).
	next *Request
	prev *Request

	atPeer list.Link[Request]
	atCtx  list.Link[Request]
}

// Status is the outcome of a completed operation.
type Status struct {
	Source, Tag int32
	Bytes       int64
	Value       bool // the message is an encoded Go value
	Cancelled   bool
	Fault       *fault.Fault
}

// Handle names a request and its generation, so that a stale handle is recognised.
type Handle struct {
	req *Request
	gen uint32
}

// Engine returns the engine that made h, or nil for the null handle and an orphan.
func (h Handle) Engine() *Engine {
	if h.req == nil {
		return nil
	}
	return h.req.e
}

// IsNull reports whether h never named a request.
func (h Handle) IsNull() bool { return h.req == nil }

func (h Handle) live() bool { return h.req != nil && h.req.gen == h.gen && h.req.kind != reqFree }

// usable reports whether h is live and Free has not given it up.
func (h Handle) usable() bool { return h.live() && !h.req.detach }

const (
	chunkBits = 8
	chunkLen  = 1 << chunkBits
	// A request's index and eight bits of its generation travel in 32 bits.
	maxRequests = 1 << 24
)

// requests are the operations of a process that have not ended.
type requests struct {
	process *process
	of      *Engine // their engine: see Handle.Engine
	up      interface {
		// opEnded reports the end of an operation while communicators are being
		// freed.
		opEnded(c *Context)
		// stepDone reports the end of a step.
		stepDone(r *Request)
	}

	pool    requestPool
	freeing int // freed contexts on which operations are pending
	// inspections are the calls that Inspect has asked for.
	inspections map[*Request]func() *fault.Fault
	retired     bool // no goroutine needs to Wait any more: see Retire
}

// requestPool keeps requests in chunks that never move, so that a token from another
// process can be checked.
type requestPool struct {
	chunks []*[chunkLen]Request
	free   *Request
}

func (rq *requests) newRequest(k reqKind) *Request {
	p := &rq.pool
	r := p.free
	if r == nil {
		p.grow(rq.of)
		r = p.free
	}
	p.free = r.next
	r.next = nil
	r.kind = k
	return r
}

func (p *requestPool) grow(e *Engine) {
	if len(p.chunks)*chunkLen >= maxRequests {
		panic("gompi: more than 16,777,216 requests are pending in one process")
	}
	c := new([chunkLen]Request)
	base := uint32(len(p.chunks)) * chunkLen
	p.chunks = append(p.chunks, c)
	for i := chunkLen - 1; i >= 0; i-- {
		r := &c[i]
		r.e = e
		r.index = base + uint32(i)
		r.gen = 1
		r.next = p.free
		p.free = r
	}
}

func (rq *requests) freeRequest(r *Request) {
	gen, index := r.gen+1, r.index
	if gen == 0 {
		gen = 1
	}
	*r = Request{e: rq.of, gen: gen, index: index, next: rq.pool.free}
	rq.pool.free = r
}

func (r *Request) token() transport.Token {
	return transport.Token(r.index) | transport.Token(r.gen)<<32
}

// byToken returns the request that a transport names, or nil.
func (p *requestPool) byToken(t transport.Token) *Request {
	i := uint32(t)
	if int(i>>chunkBits) >= len(p.chunks) {
		return nil
	}
	r := &p.chunks[i>>chunkBits][i&(chunkLen-1)]
	if r.kind == reqFree || r.gen != uint32(t>>32) {
		return nil
	}
	return r
}

// wireID is the request's number in messages. byWireID checks it.
func (r *Request) wireID() uint32 { return r.index<<8 | r.gen&0xff }

// byWireID returns the send to peer with a number that another process names, or nil.
func (p *requestPool) byWireID(id uint32, peer *Peer) *Request {
	i := id >> 8
	if int(i>>chunkBits) >= len(p.chunks) {
		return nil
	}
	r := &p.chunks[i>>chunkBits][i&(chunkLen-1)]
	if r.kind != reqSend || r.gen&0xff != id&0xff || r.peer != peer {
		return nil
	}
	return r
}

// waited reports whether a goroutine waits for r.
func (r *Request) waited() bool { return r.waiter != nil || r.owned }

func (r *Request) fail(f *fault.Fault) { r.status.Fault = f }

// complete marks r done and wakes the goroutine that waits, or informs the parent.
func (rq *requests) complete(r *Request) {
	r.done = true
	r.pend = 0
	if r.kind == reqRecv && r.status.Fault == nil && !r.status.Cancelled {
		rq.process.counters.Received++
		rq.process.counters.ReceivedBytes += uint64(r.status.Bytes)
	}
	r.atPeer.Remove()
	r.atCtx.Remove()
	if rq.freeing != 0 && r.parent == nil {
		rq.up.opEnded(r.ctx)
	}
	switch {
	case r.parent != nil:
		rq.up.stepDone(r)
	case r.waiter != nil:
		w := r.waiter
		r.waiter = nil
		rq.process.prog.Hit(&w.Waiter)
	case r.detach:
		r.inspect()
		rq.freeRequest(r)
	}
}

// Inspect arranges for f to be called once, with the lock held: before a call first reports
// the request complete, or when it ends without a waiter. If f returns a fault and the
// request has none, it becomes the request's.
func (rq *requests) Inspect(h Handle, f func() *fault.Fault) {
	rq.process.mu.Lock()
	defer rq.process.mu.Unlock()
	if !h.live() {
		return
	}
	if rq.inspections == nil {
		rq.inspections = map[*Request]func() *fault.Fault{}
	}
	h.req.inspected, rq.inspections[h.req] = true, f
}

// inspect makes the call that Inspect asked for.
func (r *Request) inspect() {
	if !r.inspected || !r.done {
		return
	}
	r.inspected = false
	f := r.e.inspections[r]
	delete(r.e.inspections, r)
	if fault := f(); r.status.Fault == nil {
		r.status.Fault = fault
	}
}

// An operation that has not ended is on the lists of its peer and its context, so that
// the end of either finds it and looks at nothing else:
//
//	Peer.ops       sends that did not go at once, receives of messages in parts,
//	               and partitioned operations with that process
//	Context.from   receives that were posted for one source
//	Context.anys   receives that were posted for any
//	Context.colls  collectives, with the requests of their steps
//	Context.ops    all other operations of a communicator
//
// An operation that ends in the call that begins it is on no list.

// hang adds r to the list of its context, unless it is a step of a collective.
func (r *Request) hang() {
	if r.ctx != nil && !r.isStep() {
		r.ctx.ops.Add(&r.atCtx, r)
	}
}

// hangOn adds r to the list of a peer and, if it is on none, of its context.
func (r *Request) hangOn(p *Peer) {
	r.atPeer.Remove()
	p.ops.Add(&r.atPeer, r)
	if !r.atCtx.Linked() {
		r.hang()
	}
}

// hangPosted adds a receive to the list of its source.
func (r *Request) hangPosted() {
	c := r.ctx
	switch source := r.posted.Key.Source(); {
	case r.isStep():
	case source == match.Any:
		c.anys.Add(&r.atCtx, r)
	default:
		if c.from == nil {
			c.from = make([]list.List[Request], len(c.peers))
		}
		c.from[source].Add(&r.atCtx, r)
	}
}

// isStep reports whether r is a step of a collective.
func (r *Request) isStep() bool {
	return r.parent != nil && r.parent.partitioned == nil && !r.parent.sendRecv
}

// Live returns the number of requests that were started and not completed by Wait or Test.
// Requests of the library do not count.
func (rq *requests) Live() int {
	rq.process.mu.Lock()
	defer rq.process.mu.Unlock()
	n := 0
	if rq.retired {
		return n
	}
	for _, c := range rq.pool.chunks {
		for i := range c {
			r := &c[i]
			if r.kind != reqFree && r.parent == nil && !r.detach {
				n++
			}
		}
	}
	return n
}

// started iterates over the operations that the program has begun and that have not ended.
func (rq *requests) started(yield func(*Request) bool) {
	for _, chunk := range rq.pool.chunks {
		for i := range chunk {
			r := &chunk[i]
			if r.kind != reqFree && !r.done && r.parent == nil && !r.detach && !r.apart && !yield(r) {
				return
			}
		}
	}
}

// NewOther starts a request that Complete ends. Layers above build operations of their own
// with it (generalized requests). A Status counts the elements of buf.
func (rq *requests) NewOther(c *Context, op fault.Call, buf buffer.Buf) Handle {
	return rq.newOther(c, op, buf, false)
}

// NewApart is NewOther for an operation without messages or remote memory. Retire does not
// wait for it: it may be the operation that calls Retire.
func (rq *requests) NewApart(c *Context, op fault.Call) Handle {
	return rq.newOther(c, op, buffer.Buf{}, true)
}

func (rq *requests) newOther(c *Context, op fault.Call, buf buffer.Buf, apart bool) Handle {
	rq.process.mu.Lock()
	defer rq.process.mu.Unlock()
	r := rq.newRequest(reqOther)
	r.op = op
	r.ctx = c
	r.rank = callreg.NoPeer
	r.tag = callreg.NoTag
	r.buf = buf
	r.apart = apart
	r.hang()
	return Handle{r, r.gen}
}

// NewDone makes a request that is complete, for operations without work or with wrong
// arguments.
func (rq *requests) NewDone(c *Context, op fault.Call, st Status) Handle {
	rq.process.mu.Lock()
	defer rq.process.mu.Unlock()
	r := rq.newRequest(reqDone)
	r.op, r.ctx, r.rank, r.tag = op, c, callreg.NoPeer, callreg.NoTag
	r.status, r.done = st, true
	return Handle{r, r.gen}
}

// NewOrphan makes a completed request that belongs to no engine: for calls on no
// communicator, and to pass on what Wait returned. It is never stale.
func NewOrphan(o Outcome) Handle {
	return Handle{req: &Request{
		kind: reqDone, done: true, op: o.Op, rank: o.Peer, tag: o.Tag, status: o.Status,
		ctx: &Context{Owner: o.Owner}, buf: buffer.Buf{Type: &dtype.Type{Size: o.Elem}},
	}}
}

// Orphan returns the outcome of a request of NewOrphan.
func (h Handle) Orphan() Outcome { return h.req.outcome() }

// Complete ends a request of NewOther. It reports whether h was still active.
func (rq *requests) Complete(h Handle, st Status) bool {
	rq.process.mu.Lock()
	defer rq.process.mu.Unlock()
	if !h.live() || h.req.kind != reqOther || h.req.done {
		return false
	}
	h.req.status = st
	rq.complete(h.req)
	return true
}

func (rq *requests) failSend(r *Request, f *fault.Fault) {
	r.pend = 0
	r.fail(f)
	rq.complete(r)
}

// failed returns a request that is complete with a fault.
func (rq *requests) failed(c *Context, k reqKind, op fault.Call, f *fault.Fault) *Request {
	r := rq.newRequest(k)
	r.ctx, r.op = c, op
	r.fail(f)
	r.done = true
	return r
}

// sendLeft clears one of the conditions that a send waits for.
func (rq *requests) sendLeft(r *Request, what uint8) {
	if r.pend&what == 0 {
		return
	}
	r.pend &^= what
	if r.pend == 0 {
		rq.complete(r)
	}
}

// withdrawn records that no receiver will see r.
func (rq *requests) withdrawn(r *Request) {
	r.status.Cancelled = true
	r.status.Bytes = 0
	if r.reason != nil {
		r.fail(r.reason)
	}
}

// misused is the outcome of a call that cannot be applied to r.
func (rq *requests) misused(r *Request, format string, args ...any) Outcome {
	o := r.outcome()
	o.Status = Status{Fault: &fault.Fault{Class: fault.Request, Peer: -1, Err: fmt.Errorf(format, args...)}}
	return o
}

// Forget lets a request end by itself: it is recycled when it completes, and h is stale
// from now on. No goroutine waits for it.
func (rq *requests) Forget(h Handle) {
	rq.process.mu.Lock()
	defer rq.process.mu.Unlock()
	if h.usable() {
		rq.forget(h.req)
	}
}

func (rq *requests) forget(r *Request) {
	if r.done {
		r.inspect()
		rq.freeRequest(r)
	} else {
		r.detach = true
	}
}

// FreeOther is Engine.Free for a request of NewOther.
func (rq *requests) FreeOther(h Handle) Outcome {
	rq.process.mu.Lock()
	defer rq.process.mu.Unlock()
	switch {
	case !h.usable():
		return stale()
	case h.req.waited():
		return rq.misused(h.req, "a goroutine waits for it")
	}
	rq.forget(h.req)
	return Outcome{}
}

// Outcome is what Wait and Test return about one request.
type Outcome struct {
	Done   bool
	Op     fault.Call
	Owner  any   // Context.Owner, nil for a stale request
	Elem   int64 // bytes of an element of the buffer
	Peer   int32
	Tag    int32
	Status Status
}

func (r *Request) outcome() Outcome {
	o := Outcome{
		Done:   true,
		Op:     r.op,
		Owner:  r.ctx.Owner,
		Peer:   r.rank,
		Tag:    r.tag,
		Status: r.status,
	}
	if r.kind == reqColl {
		o.Tag = callreg.NoTag // the program did not give it
	}
	if r.inspected {
		r.inspect()
		o.Status = r.status
	}
	if r.buf.Type != nil {
		o.Elem = r.buf.Type.Size
	}
	return o
}

func stale() Outcome {
	return Outcome{Done: true, Peer: -1, Status: Status{Fault: &fault.Fault{Class: fault.Request, Peer: -1}}}
}

// Owner returns the Owner of the context of a request that has not been freed, else nil.
func (rq *requests) Owner(h Handle) any {
	rq.process.mu.Lock()
	defer rq.process.mu.Unlock()
	if !h.live() {
		return nil
	}
	return h.req.ctx.Owner
}

// Alive reports whether h names a request that has not been freed: started,
// and not yet completed by Wait or Test.
func (rq *requests) Alive(h Handle) bool {
	rq.process.mu.Lock()
	defer rq.process.mu.Unlock()
	return h.live()
}

// member returns the member that r sends to or receives from.
func (r *Request) member() member { return memberOf(r.posted.Key.Plane(), r.rank) }

// peerMember returns the member at the other end of r. If r is a receive, it must be
// matched.
func (r *Request) peerMember() member {
	if r.kind == reqRecv {
		return memberOf(r.posted.Key.Plane(), r.status.Source)
	}
	return r.member()
}
