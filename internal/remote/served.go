// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"encoding/binary"

	"gompi/internal/buffer"
	"gompi/internal/calls"
	"gompi/internal/engine"
	"gompi/internal/fault"
	"gompi/internal/kernel"
)

// ask sends requests for n packed bytes of a layout, as many as it takes. src
// is the operand, of requests that have one; result is where replies go. q says
// the rest.
func (t *Target) ask(q request, src, result buffer.Buf, at Layout, unit, n int64) *fault.Fault {
	s, p := t.s, t.peer
	if unit > maxPacked {
		unit = 1 // a record that no frame holds
	}
	most := maxPacked - maxPacked%unit
	s.e.Lock()
	defer s.e.Unlock()
	for off := int64(0); off < n; {
		if !t.open {
			return refused(fault.Closed, at.Off, n, t.size)
		}
		if p.down != nil || p.out.full() {
			if f := t.wait(opOf(&q), 0, nil); f != nil {
				return f
			}
			continue
		}
		data := q.operands() == 1
		count, k := at.cut(&s.groups, off, n-off, unit, engine.FrameMax-requestBytes, most, data)
		q.handle, q.nonce, q.number, q.bytes, q.groups = t.handle, t.nonce, p.out.sent+1, uint32(k), uint32(count)
		b := s.frame[:requestBytes+count*groupBytes]
		q.put(b)
		for i := range count {
			s.groups[i].put(b[requestBytes+i*groupBytes:])
		}
		if data {
			b = s.frame[:len(b)+int(k)]
			src.Pack(b[len(b)-int(k):], off)
		}
		if f := t.send(b, &q, result, off); f != nil {
			return f
		}
		off += k
	}
	return nil
}

// send sends a request of n packed bytes, whose reply goes to result at off.
// The lock is held.
func (t *Target) send(b []byte, q *request, result buffer.Buf, off int64) *fault.Fault {
	if f := t.s.e.SendFrame(t.proc, b); f != nil {
		return f
	}
	f := flying{target: t, bytes: len(b)}
	if q.replies() {
		f.to, f.off, f.reply = result, off, int(q.bytes)
		f.bytes += replyBytes + f.reply
	}
	t.peer.out.add(f)
	t.last.Store(q.number)
	return nil
}

// opOf names an operation in reports of who waits.
func opOf(q *request) calls.Name {
	switch q.kind {
	case framePut:
		return "Put"
	case frameGet:
		return "Get"
	case frameAccumulate:
		return "Accumulate"
	}
	return "GetAccumulate"
}

func (t served) put(src buffer.Buf, to Layout, n int64) *fault.Fault {
	return t.ask(request{kind: framePut}, src, buffer.Buf{}, to, 1, n)
}

func (t served) get(dst buffer.Buf, from Layout, n int64) *fault.Fault {
	return t.ask(request{kind: frameGet}, buffer.Buf{}, dst, from, 1, n)
}

// change lets the owner change its memory.
func (t served) change(src, result buffer.Buf, at Layout, o operation, n int64) *fault.Fault {
	q := request{kind: frameAccumulate, op: o.op, elem: o.kind}
	if result.Bytes() > 0 {
		q.kind = frameFetch
	}
	return t.ask(q, src, result, at, o.unit, n)
}

// swap lets the owner do it.
func (t served) swap(compare, value, result buffer.Buf, off int64, o operation) *fault.Fault {
	s, p := t.s, t.peer
	s.e.Lock()
	defer s.e.Unlock()
	for {
		if !t.open {
			return refused(fault.Closed, off, value.Bytes(), t.size)
		}
		if p.down == nil && !p.out.full() {
			break
		}
		if f := t.wait("CompareAndSwap", 0, nil); f != nil {
			return f
		}
	}
	n := value.Bytes()
	q := request{
		kind: frameSwap, op: kernel.Replace, elem: o.kind, handle: t.handle, nonce: t.nonce, number: p.out.sent + 1,
		bytes: uint32(n), groups: 1,
	}
	b := s.frame[:requestBytes+groupBytes]
	q.put(b)
	g := group{off: off, length: uint32(n), runs: 1}
	g.put(b[requestBytes:])
	b = append(b, compare.Slice()...)
	b = append(b, value.Slice()...)
	return t.send(b, &q, result, 0)
}

// SetRank says as whom calls on the target wait: which rank of which
// communicator it is. Before the first operation.
func (t *Target) SetRank(ctx *engine.Context, rank int32) { t.ctx, t.rank = ctx, rank }

// Pending reports whether operations on the target are on their way, or have
// failed, of which Flush has yet to tell.
func (t *Target) Pending() bool {
	last := t.last.Load()
	if last == 0 {
		return false
	}
	t.s.e.Lock()
	defer t.s.e.Unlock()
	return t.peer.out.done < last || t.err != nil || t.peer.down != nil
}

// Flush waits until all operations on the target that this process has started
// are done there, and their results are here. If it fails, results that have
// not come will not: the memory for them is the caller's. The fault is that of
// an operation that the owner has refused, or of the wait.
func (t *Target) Flush(user context.Context) *fault.Fault {
	last := t.last.Load()
	if last == 0 {
		return t.s.gone(t.proc)
	}
	t.s.e.Lock()
	defer t.s.e.Unlock()
	p := t.peer
	if p.down != nil {
		return p.down
	}
	if p.out.done < last {
		if f := t.urge(last); f != nil {
			return f
		}
		if f := t.wait("Flush", last, user); f != nil {
			t.forget()
			return f
		}
	}
	return t.takeFault()
}

// urge asks for an answer to all requests up to one, if none is coming.
func (t *Target) urge(number uint64) *fault.Fault {
	o := &t.peer.out
	if o.asked >= number {
		return nil
	}
	b := t.s.frame[:replyBytes]
	clear(b)
	b[0] = frameAsk
	binary.LittleEndian.PutUint64(b[8:], o.sent)
	if f := t.s.e.SendFrame(t.proc, b); f != nil {
		return f
	}
	o.asked = o.sent
	return nil
}

// Request gives a request that ends when all operations on the target that were
// started before are done.
func (t *Target) Request(op calls.Name, ctx *engine.Context, rank int32) engine.Handle {
	s := t.s
	s.e.Lock()
	defer s.e.Unlock()
	h := s.e.NewRemote(ctx, op, rank)
	last := t.last.Load()
	if last == 0 {
		s.e.EndRemote(h, engine.Status{})
		return h
	}
	o := &t.peer.out
	f := t.peer.down
	if f == nil && o.done < last {
		f = t.urge(last)
	}
	if f != nil || o.done >= last {
		if f == nil {
			f = t.takeFault()
		}
		s.e.EndRemote(h, engine.Status{Fault: f})
		return h
	}
	o.handles = append(o.handles, promise{last, t, h})
	return h
}
