// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/data/kernel"
	"gompi/internal/engine"
)

// ask sends requests for n packed bytes of a layout, as many as necessary. src is the
// operand, for requests that have one; replies go to result. q has the rest.
func (t *Target) ask(q request, src, result buffer.Buf, at Layout, unit, n int64) *fault.Fault {
	s, p := t.s, t.peer
	if unit > maxPacked {
		unit = 1 // a record that does not fit a frame
	}
	most := maxPacked - maxPacked%unit
	s.e.Lock()
	defer s.e.Unlock()
	for off := int64(0); off < n; {
		if !t.open {
			return refused(fault.Closed, at.Off, n, t.size)
		}
		if p.down != nil || p.out.full() {
			if f := t.wait(opOf(&q), &p.out.opQueue, 0, 0, nil); f != nil {
				return f
			}
			continue
		}
		data := q.operands() == 1
		count, k := at.cut(&s.groups, off, n-off, unit, engine.FrameMax-requestBytes, most, data)
		q.handle = t.handle
		q.nonce = t.nonce
		q.number = p.out.begun + 1
		q.bytes = uint32(k)
		q.groups = uint32(count)
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

// send sends a request of n packed bytes, whose reply goes to result at off. The caller
// holds the lock.
func (t *Target) send(b []byte, q *request, result buffer.Buf, off int64) *fault.Fault {
	if f := t.s.e.SendFrame(t.proc, b); f != nil {
		return f
	}
	f := inflightOp{bytes: len(b)}
	f.ended[atOrigin] = !q.replies() // the frame is a copy
	if q.replies() {
		f.to, f.off, f.reply = result, off, int(q.bytes)
		f.bytes += replyBytes + f.reply
		t.peer.out.asked = q.number
	}
	t.begin(byFrames, f)
	return nil
}

// opOf names an operation for reports.
func opOf(q *request) fault.Call {
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
		if f := t.wait("CompareAndSwap", &p.out.opQueue, 0, 0, nil); f != nil {
			return f
		}
	}
	n := value.Bytes()
	q := request{
		kind: frameSwap, op: kernel.Replace, elem: o.kind, handle: t.handle, nonce: t.nonce, number: p.out.begun + 1,
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
