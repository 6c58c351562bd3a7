// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"gompi/internal/segment"
	"gompi/internal/wire"
	"gompi/transport"
)

// outRing is the sender's end of a lane. The zero value has no room.
type outRing struct {
	slots []slot
	data  []byte
	lane  *lane
	head  *headWords // of the peer
	edge  edge

	pos, dataPos   uint32 // where the next message goes
	done, dataDone uint32 // consumed by the peer, when we last looked
	limit          uint32 // slots for messages: the last one is kept for bye
	bell           int    // of the peer
	eager          uint32 // largest payload

	mem, headMem []byte
}

func newOutRing(m []byte, g shape) outRing {
	o := outRing{mem: m, limit: g.slots - 1, bell: -1, eager: g.eager}
	o.lane, o.slots, o.data = viewLane(m, g)
	return o
}

// room reports whether a message with n payload bytes fits now.
func (o *outRing) room(n int) bool {
	if o.pos-o.done < o.limit && (n <= inlineMax || o.fits(n)) {
		return true
	}
	return o.refresh() && o.pos-o.done < o.limit && (n <= inlineMax || o.fits(n))
}

func (o *outRing) fits(n int) bool {
	_, end := place(o.dataPos, n, uint32(len(o.data)))
	return end-o.dataDone <= uint32(len(o.data))
}

// refresh looks how far the peer has got. It reports whether there is news;
// progress that cannot be is none.
func (o *outRing) refresh() bool {
	if o.lane == nil {
		return false
	}
	w := o.lane.progress.Load()
	done, data := uint32(w>>32), uint32(w)
	if done == o.done && data == o.dataDone || o.pos-done > uint32(len(o.slots)) || o.dataPos-data > uint32(len(o.data)) {
		return false
	}
	o.edge.acquire()
	o.done, o.dataDone = done, data
	return true
}

// beg tells the peer that we are blocked, so that it publishes its progress
// at once. It reports whether there is room after all.
func (o *outRing) beg(n int) bool {
	if o.lane == nil {
		return false
	}
	if o.lane.want.Load() == 0 {
		o.lane.want.Store(1)
	}
	return o.room(n)
}

// put writes a message for which there is room.
func (o *outRing) put(k kind, h *wire.Header, p []byte) {
	s := &o.slots[o.pos&uint32(len(o.slots)-1)]
	s.head = *h
	if len(p) <= inlineMax {
		copy(s.inline[:], p)
	} else {
		start, end := place(o.dataPos, len(p), uint32(len(o.data)))
		copy(o.data[start&uint32(len(o.data)-1):], p)
		o.dataPos = end
	}
	o.pos++
	o.edge.release()
	s.word.Store(slotWord(o.pos, k, len(p)))
	if o.head.sleeping.Load() != 0 {
		wake(o.head, o.bell)
	}
}

// bye is the last message; its slot was kept free for it.
func (o *outRing) bye() {
	if o.refresh(); o.pos-o.done <= o.limit {
		o.put(kindBye, &wire.Header{}, nil)
	}
	o.lane.closed.Store(1)
	wake(o.head, o.bell)
}

func (o *outRing) detach() {
	segment.Unmap(o.mem)
	segment.Unmap(o.headMem)
	closeFD(o.bell)
}

// wake rings a process if it sleeps. The caller's own store comes first; the
// sleeper stores sleeping before it looks: one of the two sees the other.
func wake(h *headWords, bell int) {
	if h.sleeping.Load() != 0 && h.sleeping.Swap(0) != 0 {
		ringBell(bell)
	}
}

// Send copies a message into the ring of s. It answers Sent, or Full, or
// Broken; never Queued.
func (t *Transport) Send(s transport.Slot, h *wire.Header, p []byte, _ transport.Token) transport.Status {
	c := t.conn(s)
	if c == nil || c.state != connUp {
		return transport.Broken
	}
	if !c.out.room(len(p)) {
		if len(p) > t.caps.EagerMax {
			panic("gompi: BUG: message above EagerMax")
		}
		if !c.out.beg(len(p)) {
			c.wanting, c.wantLen = true, len(p)
			t.waitRoom(c)
			return transport.Full
		}
	}
	c.out.put(kindData, h, p)
	return transport.Sent
}

// letter is a control message that waits for room.
type letter struct {
	kind kind
	head wire.Header
}

// post sends a control message, now or when there is room.
func (t *Transport) post(c *conn, k kind, h wire.Header) {
	if len(c.letters) == 0 && (c.out.room(0) || c.out.beg(0)) {
		c.out.put(k, &h, nil)
		return
	}
	c.letters = append(c.letters, letter{k, h})
	t.chores.letters = appendOnce(t.chores.letters, c)
	t.chores.busy = true
}

// flush posts what waits; it reports whether nothing waits any more.
func (c *conn) flush() bool {
	for i, l := range c.letters {
		if !c.out.room(0) && !c.out.beg(0) {
			c.letters = append(c.letters[:0], c.letters[i:]...)
			return false
		}
		c.out.put(l.kind, &l.head, nil)
	}
	c.letters = c.letters[:0]
	return true
}

// waitRoom watches the ring of c until it can answer EvWritable.
func (t *Transport) waitRoom(c *conn) {
	t.chores.wanting = appendOnce(t.chores.wanting, c)
	t.chores.busy = true
}
