// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/binary"
	"fmt"

	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/transport"
)

// Partitioned is one side of a partitioned transfer (MPI 4.1 chapter 4).
//
// The sender describes its partitions in one message on TrafficPartInit with the
// user's tag, so that Inits match in order. Neither side withdraws that message
// while the context lives: later Inits would match the wrong ones.
//
// Partition i of every start is a message with tag base+i on TrafficPart. The
// sender chooses base, unique among its own on the context. It needs no answer,
// because keys contain the source. Messages of one tag keep their order, so the
// n-th message belongs to the n-th start. They land in the receiver's buffer
// directly, whatever its own partitions are.
//
// The description has 16 bytes, little endian:
//
//	0   uint32  partitions of the sender
//	4   uint32  base
//	8   uint64  bytes of a partition
//
// The engine's lock guards all fields.
type Partitioned struct {
	k     coll // parent of its requests; pending counts partitions that have not ended
	args  PartArgs
	main  *Request     // of the start under way
	lost  *fault.Fault // why it cannot be started any more
	known bool         // the sender's partitions are known
	parts int32        // partitions of the sender
	base  int32
	size  int64 // bytes of a partition of the sender
	// marked has a flag for each partition of the sender: made ready here, or arrived.
	marked []bool
	frame  [partFrame]byte
}

// partitions are the partitioned operations of a process.
type partitions struct {
	process *process
	reqs    *requests
	net     *network
	sends   *sends
	recvs   *receives
}

const partFrame = 16

// MaxPartitions is the largest number of partitions of one operation.
const MaxPartitions = 1 << 16

// PartArgs are the arguments of a partitioned operation. The bytes of Buf are
// a multiple of Parts.
type PartArgs struct {
	Op    fault.Call
	Buf   buffer.Buf
	Send  bool
	Parts int32 // 1..MaxPartitions
	Peer  int32
	Tag   int32
	User  context.Context
}

// PartInit makes one side of a partitioned transfer. It returns nil if all tags of the
// context are in use by senders of this process.
func (pt *partitions) PartInit(c *Context, a *PartArgs) *Partitioned {
	pt.process.mu.Lock()
	defer pt.process.mu.Unlock()
	p := &Partitioned{args: *a}
	p.k.ctx, p.k.partitioned = c, p
	if p.lost = c.opFault(); p.lost != nil {
		return p
	}
	if !a.Send {
		pt.partPost(p, buffer.Of(p.frame[:]), wire.TrafficPartInit, a.Tag)
		return p
	}
	base, ok := c.partitionTags.take(uint32(a.Parts))
	if !ok {
		return nil
	}
	p.known, p.parts, p.size, p.base = true, a.Parts, a.Buf.Bytes()/int64(a.Parts), int32(base)
	p.marked = make([]bool, p.parts)
	binary.LittleEndian.PutUint32(p.frame[0:], uint32(p.parts))
	binary.LittleEndian.PutUint32(p.frame[4:], uint32(p.base))
	binary.LittleEndian.PutUint64(p.frame[8:], uint64(p.size))
	_, p.lost = pt.partSend(p, buffer.Of(p.frame[:]), wire.TrafficPartInit, a.Tag)
	return p
}

func (pt *partitions) partPost(p *Partitioned, b buffer.Buf, pl wire.TrafficClass, tag int32) {
	r := pt.reqs.newRequest(reqRecv)
	r.op, r.ctx, r.rank, r.tag, r.buf, r.parent = p.args.Op, p.k.ctx, p.args.Peer, tag, b, &p.k
	pt.recvs.post(r, p.k.ctx.keys[pl].With(p.args.Peer, tag))
}

// partSend sends one message of p. If left is false, partDone is called when it ends.
func (pt *partitions) partSend(p *Partitioned, b buffer.Buf, pl wire.TrafficClass, tag int32) (left bool, f *fault.Fault) {
	c := p.k.ctx
	peer, f := c.reach(member(p.args.Peer))
	if f != nil {
		return false, f
	}
	a := SendArgs{Op: p.args.Op, Buf: b, Dest: p.args.Peer, Tag: tag, Plane: pl}
	if pt.sends.sendNow(c, peer, &a) {
		return true, nil
	}
	pt.sends.startSend(c, peer, &a, &p.k)
	return false, nil
}

// PartStart starts p, which must have no start under way. It does not wait for the other
// side.
func (pt *partitions) PartStart(p *Partitioned) Handle {
	pt.process.mu.Lock()
	defer pt.process.mu.Unlock()
	if p.main != nil {
		panic("gompi: BUG: partitioned operation started twice")
	}
	c := p.k.ctx
	r := pt.reqs.newRequest(reqPart)
	r.op = p.args.Op
	r.ctx = c
	r.rank = p.args.Peer
	r.tag = p.args.Tag
	r.buf = p.args.Buf
	r.user = p.args.User
	r.coll = &p.k
	r.status.Source, r.status.Tag = p.args.Peer, p.args.Tag
	h := Handle{r, r.gen}
	f := p.lost
	if f == nil {
		f = c.opFault()
	}
	if f != nil {
		r.fail(f)
		pt.reqs.complete(r)
		return h
	}
	p.main, p.k.fault = r, nil
	r.hangOn(c.peer(member(r.rank)))
	clear(p.marked)
	switch {
	case p.args.Send:
		p.k.pending = int(p.parts)
	case p.known:
		pt.partPostAll(p)
	}
	return h
}

// partPostAll posts the receives of all partitions. Data that do not fit the buffer are
// received and dropped, so that the sender goes on.
func (pt *partitions) partPostAll(p *Partitioned) {
	room := p.args.Buf.Bytes()
	if total := p.size * int64(p.parts); total != room {
		p.k.fault = &fault.Fault{Class: fault.Mismatch, Got: total, Want: room, Peer: p.args.Peer}
	}
	p.k.pending = int(p.parts)
	for i := range p.parts {
		lo := min(int64(i)*p.size, room)
		hi := min(lo+p.size, room)
		pt.partPost(p, p.args.Buf.Part(lo, hi-lo), wire.TrafficPart, p.base+i)
	}
}

// PartReady sends partitions lo..hi of a start under way. If one of them was ready before,
// it sends nothing and returns its number in again, else -1.
func (pt *partitions) PartReady(p *Partitioned, lo, hi int32) (again int32, active bool) {
	pt.process.mu.Lock()
	defer pt.process.mu.Unlock()
	if p.main == nil {
		return -1, false
	}
	for i := lo; i <= hi; i++ {
		if p.marked[i] {
			return i, true
		}
	}
	// A failure below must not complete the operation before the loop ends.
	p.k.pending++
	for i := lo; i <= hi; i++ {
		p.marked[i] = true
		left, f := pt.partSend(p, p.args.Buf.Part(int64(i)*p.size, p.size), wire.TrafficPart, p.base+i)
		if left || f != nil {
			pt.partEnded(p, f)
		}
	}
	pt.partEnded(p, nil)
	return -1, true
}

func (p *Partitioned) arrived(lo, hi int64) bool {
	if p.main == nil {
		return true
	}
	if !p.known || p.size == 0 || lo == hi {
		return false
	}
	for i := lo / p.size; i*p.size < hi; i++ {
		if i >= int64(p.parts) || !p.marked[i] {
			return false
		}
	}
	return true
}

// PartFree ends p. It returns false if a start is under way. The receive of a description
// that has not come stays: it takes the Init that it matches.
func (pt *partitions) PartFree(p *Partitioned) bool {
	pt.process.mu.Lock()
	defer pt.process.mu.Unlock()
	if p.main != nil {
		return false
	}
	if p.args.Send && p.parts > 0 {
		p.k.ctx.partitionTags.free(uint32(p.base))
	}
	p.args.Buf, p.marked, p.parts = buffer.Buf{}, nil, 0 // the memory belongs to the caller again
	return true
}

// partDone counts the end of one message of p.
func (pt *partitions) partDone(p *Partitioned, r *Request) {
	f := r.status.Fault
	if f == nil && r.status.Cancelled {
		f = &fault.Fault{Class: fault.Cancelled, Peer: r.rank}
	}
	n, tag, described := r.status.Bytes, r.tag, r.describes()
	pt.reqs.freeRequest(r)
	switch {
	case !described && p.args.Send:
		pt.partEnded(p, f)
	case !described:
		if f == nil && p.known {
			p.marked[tag-p.base] = true
		}
		pt.partEnded(p, f)
	case f != nil:
		pt.partLost(p, f)
	case !p.args.Send:
		if err := p.describe(n); err != nil {
			pt.partLost(p, &fault.Fault{Class: fault.Unreachable, Peer: p.args.Peer, Err: err})
		} else if p.main != nil {
			pt.partPostAll(p)
		}
	}
}

// describes reports whether a message of a partitioned transfer is the
// sender's description.
func (r *Request) describes() bool { return r.posted.Key.Plane() == wire.TrafficPartInit }

// keeps reports whether r, a message of p, outlives a start that is given up.
func (p *Partitioned) keeps(r *Request) bool {
	t := p.k.ctx.faults
	return r.describes() && (t == nil || !t.freed)
}

// describe reads the sender's description of its partitions.
func (p *Partitioned) describe(n int64) error {
	parts := binary.LittleEndian.Uint32(p.frame[0:])
	base := binary.LittleEndian.Uint32(p.frame[4:])
	size := binary.LittleEndian.Uint64(p.frame[8:])
	if n != partFrame || parts == 0 || parts > MaxPartitions || base > 1<<31-parts || size > 1<<46 {
		return fmt.Errorf("%w: partitioned send of %d partitions of %d bytes at %d, described in %d bytes",
			transport.ErrProtocol, parts, size, base, n)
	}
	p.known, p.parts, p.base, p.size = true, int32(parts), int32(base), int64(size)
	p.marked = make([]bool, parts)
	return nil
}

// partEnded counts the end of one partition.
func (pt *partitions) partEnded(p *Partitioned, f *fault.Fault) {
	if f != nil && p.k.fault == nil {
		p.k.fault = f
	}
	p.k.pending--
	if p.k.pending == 0 {
		pt.partFinish(p)
	}
}

func (pt *partitions) partFinish(p *Partitioned) {
	r := p.main
	if r == nil {
		return
	}
	p.main = nil
	r.coll = nil
	if f := p.k.fault; f != nil {
		r.fail(f)
		if f.Class != fault.Mismatch && p.lost == nil {
			// A partition may be missing. Then its tag would stay one start behind for
			// ever.
			p.lost = f
		}
	} else {
		r.status.Bytes = p.args.Buf.Bytes()
	}
	pt.reqs.complete(r)
}

// partLost makes it impossible to start p again.
func (pt *partitions) partLost(p *Partitioned, f *fault.Fault) {
	if p.lost == nil {
		p.lost = f
	}
	pt.partAbort(p, f)
}

// partAbort gives up the start under way. It ends when no other process touches the buffer
// any more.
func (pt *partitions) partAbort(p *Partitioned, f *fault.Fault) {
	if p.main == nil {
		return
	}
	if p.lost == nil {
		p.lost = f
	}
	if p.k.fault == nil {
		p.k.fault = f
	}
	p.k.pending++
	if p.args.Send {
		for i, ready := range p.marked {
			if !ready {
				p.marked[i] = true
				p.k.pending--
			}
		}
	}
	its := func(r *Request) bool {
		if r.parent == &p.k && !p.keeps(r) {
			pt.sends.withdraw(r, p.k.fault)
		}
		return true
	}
	if c := p.k.ctx; p.args.Send {
		c.peer(member(p.args.Peer)).ops.Each(its)
	} else if c.from != nil {
		c.from[p.args.Peer].Each(its)
	}
	pt.partEnded(p, nil)
}
