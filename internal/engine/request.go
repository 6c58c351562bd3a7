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
	pendLeave   = 1 << iota // the transport still reads the payload
	pendAck                 // the receiver's Ack (synchronous mode)
	pendBulk                // the end of the bulk transfer, or Refuse
	pendQueue               // its place in the peer's queue
	pendCancel              // the receiver's answer to Cancel
	pendStream              // its turn among the streams, and its end
	pendVerdict             // what has become of the peer; receives, too
	pendTold                // of a receive: that its sender hears of it
)

// Request is one operation in progress. It is recycled: whoever keeps one
// across calls keeps its generation too (Handle).
type Request struct {
	posted match.Posted[Request]

	e      *Engine // of the pool; immutable
	index  uint32
	gen    uint32
	kind   reqKind
	done   bool
	pend   uint8
	flags  uint8
	detach bool // nobody will wait: free it when it is done
	apart  bool // Engine.NewApart
	owned  bool // a goroutine polls for it
	bulk   bool // a receive that was matched and is being transferred
	aside  bool // a send in Peer.stalled
	rests  bool // see waiter.rests
	looked bool // see Inspect

	op   fault.Call
	ctx  *Context
	peer *Peer
	buf  buffer.Buf
	user context.Context // gives up the operation; nil: never
	rank int32           // peer rank: destination or source, may be Any
	tag  int32

	// Of a stream: how many bytes have passed, of how many, and a receive's
	// sender's request.
	passed, want int64
	from         uint32

	status Status
	reason *fault.Fault // why a send is being withdrawn
	parent *coll        // the collective of which this is a step, or what it is a part of
	waiter *waiter      // who waits
	coll   *coll        // reqColl, reqPart, reqPair
	next   *Request
	prev   *Request // in a sendQueue

	atPeer list.Link[Request] // in Peer.ops
	atCtx  list.Link[Request] // in Context.ops, anys or from
}

// Status is what a completed operation tells.
type Status struct {
	Source, Tag int32
	Bytes       int64
	Value       bool // the message is an encoded Go value
	Cancelled   bool
	Fault       *fault.Fault
}

// Handle is a request with its generation: a stale one is recognised.
type Handle struct {
	req *Request
	gen uint32
}

// Engine is the engine that made h, nil for the null handle and an orphan.
func (h Handle) Engine() *Engine {
	if h.req == nil {
		return nil
	}
	return h.req.e
}

// IsNull reports whether h never named a request.
func (h Handle) IsNull() bool { return h.req == nil }

func (h Handle) live() bool { return h.req != nil && h.req.gen == h.gen && h.req.kind != reqFree }

// usable: live, and not given up by Free.
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
	of      *Engine // whose they are: see Handle.Engine
	up      interface {
		// opEnded tells that an operation has ended while communicators are being
		// freed.
		opEnded(c *Context)
		// stepDone tells that a step of an operation has.
		stepDone(r *Request)
	}

	pool    requestPool
	freeing int // freed contexts on which operations are pending
	// inspections are those of requests that are looked at (Inspect).
	inspections map[*Request]func() *fault.Fault
	retired     bool // nobody need Wait any more: see Retire
}

// requestPool keeps requests in chunks that never move, so that a token from
// another process can be checked.
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

// byToken finds a request of this process that a transport names.
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

// wireID is the name of r in messages: checked by byWireID.
func (r *Request) wireID() uint32 { return r.index<<8 | r.gen&0xff }

// byWireID finds the send to peer that another process names.
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

// complete marks r done and tells whoever waits.
func (rq *requests) complete(r *Request) {
	r.done = true
	r.pend = 0
	if r.kind == reqRecv && r.status.Fault == nil && !r.status.Cancelled {
		rq.process.tally.Received++
		rq.process.tally.ReceivedBytes += uint64(r.status.Bytes)
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

// Inspect has f called once, with the lock held, before a request is first told to be
// complete, or when it ends of itself. A fault that it returns is that of the request,
// which has no other.
func (rq *requests) Inspect(h Handle, f func() *fault.Fault) {
	rq.process.mu.Lock()
	defer rq.process.mu.Unlock()
	if !h.live() {
		return
	}
	if rq.inspections == nil {
		rq.inspections = map[*Request]func() *fault.Fault{}
	}
	h.req.looked, rq.inspections[h.req] = true, f
}

// inspect is what Inspect has asked for.
func (r *Request) inspect() {
	if !r.looked || !r.done {
		return
	}
	r.looked = false
	f := r.e.inspections[r]
	delete(r.e.inspections, r)
	if fault := f(); r.status.Fault == nil {
		r.status.Fault = fault
	}
}

// What has not ended hangs on its peer and on its context, so that the end of one
// of these finds it, and looks at nothing else:
//
//	Peer.ops       sends that did not go at once, receives of what comes in parts,
//	               and partitioned operations with that process
//	Context.from   receives that were posted for one source
//	Context.anys   receives that were posted for any
//	Context.colls  collectives, with the requests of their steps
//	Context.ops    all other operations of a communicator
//
// What ends in the call that begins it is on no list.

// hang puts r on the list of its context, unless it is a step of a collective.
func (r *Request) hang() {
	if r.ctx != nil && !r.isStep() {
		r.ctx.ops.Add(&r.atCtx, r)
	}
}

// hangOn puts r on the list of a peer and that of its context, if it is not there.
func (r *Request) hangOn(p *Peer) {
	r.atPeer.Remove()
	p.ops.Add(&r.atPeer, r)
	if !r.atCtx.Linked() {
		r.hang()
	}
}

// hangPosted puts a receive on the list of its source.
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
func (r *Request) isStep() bool { return r.parent != nil && r.parent.part == nil && !r.parent.pair }

// Live is the number of requests that were started and not completed by Wait
// or Test, without those that belong to the library.
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

// started are the operations that the program has begun and that have not ended.
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

// NewOther starts a request that Complete ends: for layers above that build
// operations of their own (generalized requests). A Status counts the elements
// of buf.
func (rq *requests) NewOther(c *Context, op fault.Call, buf buffer.Buf) Handle {
	return rq.newOther(c, op, buf, false)
}

// NewApart is NewOther for what has no part in any process's messages or memory: who
// retires does not wait for it, and may be what it waits for.
func (rq *requests) NewApart(c *Context, op fault.Call) Handle {
	return rq.newOther(c, op, buffer.Buf{}, true)
}

func (rq *requests) newOther(c *Context, op fault.Call, buf buffer.Buf, apart bool) Handle {
	rq.process.mu.Lock()
	defer rq.process.mu.Unlock()
	r := rq.newRequest(reqOther)
	r.op, r.ctx, r.rank, r.tag, r.buf, r.apart = op, c, callreg.NoPeer, callreg.NoTag, buf, apart
	r.hang()
	return Handle{r, r.gen}
}

// NewDone makes a request that is complete: for operations that need nothing
// done, or whose arguments are wrong.
func (rq *requests) NewDone(c *Context, op fault.Call, st Status) Handle {
	rq.process.mu.Lock()
	defer rq.process.mu.Unlock()
	r := rq.newRequest(reqDone)
	r.op, r.ctx, r.rank, r.tag = op, c, callreg.NoPeer, callreg.NoTag
	r.status, r.done = st, true
	return Handle{r, r.gen}
}

// NewOrphan is a request of no engine that has ended: for calls on no
// communicator, and to hand on what Wait gave. It is never stale.
func NewOrphan(o Outcome) Handle {
	return Handle{req: &Request{
		kind: reqDone, done: true, op: o.Op, rank: o.Peer, tag: o.Tag, status: o.Status,
		ctx: &Context{Owner: o.Owner}, buf: buffer.Buf{Type: &dtype.Type{Size: o.Elem}},
	}}
}

// Orphan is how a request of NewOrphan ended.
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

// sendLeft clears one thing that a send waited for.
func (rq *requests) sendLeft(r *Request, what uint8) {
	if r.pend&what == 0 {
		return
	}
	r.pend &^= what
	if r.pend == 0 {
		rq.complete(r)
	}
}

// withdrawn books that no receiver will see r.
func (rq *requests) withdrawn(r *Request) {
	r.status.Cancelled = true
	r.status.Bytes = 0
	if r.reason != nil {
		r.fail(r.reason)
	}
}

// misused is what a call that cannot be applied to r gives.
func (rq *requests) misused(r *Request, format string, args ...any) Outcome {
	o := r.outcome()
	o.Status = Status{Fault: &fault.Fault{Class: fault.Request, Peer: -1, Err: fmt.Errorf(format, args...)}}
	return o
}

// Forget lets a request end by itself: it is recycled when it completes, and h
// is stale from now on. Nobody waits for it.
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

// FreeOther is Engine.Free of a request of NewOther.
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

// Outcome is what Wait and Test tell of one request.
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
	o := Outcome{Done: true, Op: r.op, Owner: r.ctx.Owner, Peer: r.rank, Tag: r.tag, Status: r.status}
	if r.kind == reqColl {
		o.Tag = callreg.NoTag // the program did not give it
	}
	if r.looked {
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

// Owner is that of the context of a request that has not been freed, else nil.
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

// seat is that of the rank that r sends to or receives from.
func (r *Request) seat() seat { return seatOf(r.posted.Key.Plane(), r.rank) }

// peerSeat is that of the rank at the other end of r, which is matched if it is
// a receive.
func (r *Request) peerSeat() seat {
	if r.kind == reqRecv {
		return seatOf(r.posted.Key.Plane(), r.status.Source)
	}
	return r.seat()
}
