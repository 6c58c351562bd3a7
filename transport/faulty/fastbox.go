// SPDX-License-Identifier: Apache-2.0

package faulty

import (
	"gompi/internal/base/wire"
	"gompi/transport"
)

// stream wraps the transport.FastBox of a slot.
type stream struct {
	t     *wrapper
	slot  transport.Slot
	below transport.FastBox
	taken []byte // the payload of the last Take
}

// FastBox implements transport.FastBoxes.
func (t *wrapper) FastBox(s transport.Slot) transport.FastBox {
	b, ok := t.Transport.(transport.FastBoxes)
	if !ok {
		return nil
	}
	l := t.slot(s)
	if l.stream == nil {
		below := b.FastBox(s)
		if below == nil {
			return nil
		}
		l.stream = &stream{t: t, slot: s, below: below}
	}
	return l.stream
}

// Take implements transport.FastBox. An event that Poll holds back comes before messages of the
// fast box below. Take may hold the latter back, too.
func (x *stream) Take(h *wire.Header, turns int) (payload []byte, ok bool) {
	t, l := x.t, x.t.slot(x.slot)
	if l.down {
		return nil, false
	}
	if l.head < len(l.queue) {
		e := &l.queue[l.head]
		if e.Kind != transport.EvRecv || e.due > t.turn {
			return nil, false
		}
		*h, x.taken = e.Header, append(x.taken[:0], e.Payload...)
		t.free = append(t.free, e.Payload)
		l.pop()
		t.held--
	} else {
		if t.chance(t.plan.Delay) {
			t.plan.Counters.HeldBack.Add(1)
			return nil, false
		}
		p, ok := x.below.Take(h, turns)
		if !ok {
			return nil, false
		}
		x.taken = append(x.taken[:0], p...)
		t.mayFail(x.slot, l)
	}
	t.plan.Counters.Taken.Add(1)
	return x.taken, true
}

// reserver wraps the transport.Reserver below.
type reserver struct {
	below transport.Reserver
	t     *wrapper
}

// Reserve implements transport.Reserver.
func (r reserver) Reserve(s transport.Slot, n int) ([]byte, transport.Status) {
	l := r.t.slot(s)
	if r.t.refuses(l) {
		return nil, transport.Full
	}
	mem, st := r.below.Reserve(s, n)
	if st == transport.Sent {
		r.t.plan.Counters.Reserved.Add(1)
	}
	return mem, l.noteStatus(st)
}

// Commit implements transport.Reserver.
func (r reserver) Commit(s transport.Slot, h *wire.Header, p []byte) { r.below.Commit(s, h, p) }
