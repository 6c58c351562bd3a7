// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"gompi/transport"
)

const (
	maxActive   = 8
	idlePerPoll = 4 // idle rings looked at by each Poll
)

// Poll releases what the last Poll delivered, takes in new peers and messages, and copies
// at most one chunk of a bulk transfer. With more than maxActive rings, a Poll looks at
// only some of those that have been silent for a while. Arm looks at all.
func (t *Transport) Poll(ev []transport.Event) int {
	if len(t.delivered) != 0 {
		t.release()
	}
	if len(t.reclaimable)+len(t.retired) != 0 {
		t.reapRetired()
		t.freeReclaimable()
	}
	if t.dir.changed() {
		t.scanDirectory()
	}
	n := 0
	if !t.events.empty() {
		n = t.events.take(ev)
	}
	if t.full {
		// A flood from the active rings must not keep the others waiting.
		n = t.doWork(ev, t.pollIdle(ev, n))
		t.full = false
	}
	n = t.pollActive(ev, n)
	if len(t.rings) > t.active {
		n = t.pollIdle(ev, n)
	}
	if t.work.busy {
		n = t.doWork(ev, n)
	}
	t.full = n == len(ev)
	return n
}

func (t *Transport) release() {
	for i, r := range t.delivered {
		r.dirty = false
		r.release()
		t.delivered[i] = nil
	}
	t.delivered = t.delivered[:0]
}

func (t *Transport) pollActive(ev []transport.Event, n int) int {
	hot := t.rings[:t.active]
	i := t.first
	for range hot {
		if i >= len(hot) {
			i = 0
		}
		r := hot[i]
		i++
		if r.comes() {
			if n == len(ev) {
				t.first = i - 1
				return n
			}
			n = t.drain(r, ev, n)
			t.first = i
		}
	}
	return n
}

func (t *Transport) pollIdle(ev []transport.Event, n int) int {
	for range min(idlePerPoll, len(t.rings)-t.active) {
		if n == len(ev) {
			break
		}
		if t.idleNext < t.active || t.idleNext >= len(t.rings) {
			t.idleNext = t.active
		}
		r := t.rings[t.idleNext]
		t.idleNext++
		if r.comes() {
			n = t.drain(r, ev, n)
			t.activate(r)
		}
	}
	return n
}

// activate makes r active, in place of the ring that has been active for longest.
func (t *Transport) activate(r *inRing) {
	if r.index < t.active {
		return
	}
	if t.activeVictim >= t.active {
		t.activeVictim = 0
	}
	t.swapRings(r.index, t.activeVictim)
	t.activeVictim++
}

func (t *Transport) swapRings(i, j int) {
	a, b := t.rings[i], t.rings[j]
	t.rings[i], t.rings[j] = b, a
	a.index, b.index = j, i
}

func (t *Transport) addRing(r *inRing) {
	r.index = len(t.rings)
	t.rings = append(t.rings, r)
	t.active = min(maxActive, len(t.rings))
}

// removeRing ends polling of r; it may have been removed before.
func (t *Transport) removeRing(r *inRing) {
	if r.index < 0 {
		return
	}
	last := len(t.rings) - 1
	t.swapRings(r.index, last)
	t.rings[last] = nil
	t.rings = t.rings[:last]
	t.active = min(maxActive, last)
	r.index = -1
	for i, d := range t.delivered {
		if d == r {
			t.delivered = append(t.delivered[:i], t.delivered[i+1:]...)
			break
		}
	}
	r.dirty = false
	// A caller that still holds the fast box sees nothing new there.
	r.next, r.seq, r.duplex, r.half = &t.silence, 1, false, nil
}

// Arm sets the word that makes peers ring the bell, then looks everywhere once more.
func (t *Transport) Arm() bool {
	t.own.sleeping.Store(1)
	t.armed = true
	if !t.pending() {
		return true
	}
	t.armed = false
	if t.own.sleeping.Swap(0) == 0 {
		hushBell(t.env.Bell)
	}
	return false
}

// Disarm ends Arm. It always clears the bell: a late ring would end every later sleep.
func (t *Transport) Disarm() {
	if !t.armed {
		return
	}
	t.armed = false
	t.own.sleeping.Swap(0)
	hushBell(t.env.Bell)
}

// pending reports whether Poll might have something to do.
func (t *Transport) pending() bool {
	if !t.events.empty() || len(t.delivered) != 0 || t.dir.changed() {
		return true
	}
	for _, r := range t.rings {
		if r.ready() {
			t.activate(r)
			return true
		}
	}
	return t.work.busy && t.workPending()
}

// pollWork is what Poll does besides polling rings.
type pollWork struct {
	busy     bool // a list is not empty
	bulks    []*bulk
	controls []*conn // their control messages wait for room
	waiting  []*conn // accepted transfers wait until answers can be sent
	wanting  []*conn // Send answered Full
	failing  []*conn // EvDown will follow
}

func (t *Transport) doWork(ev []transport.Event, n int) int {
	h := &t.work
	if !h.busy {
		return n
	}
	h.controls = filter(h.controls, func(c *conn) bool { return !c.flush() })
	if len(h.waiting) > 0 {
		h.waiting = filter(h.waiting, func(c *conn) bool { return !t.beginSome(c) })
	}
	h.wanting = filter(h.wanting, t.stillFull)
	if len(h.bulks) > 0 {
		t.stepBulks()
	}
	if len(h.failing) > 0 {
		h.failing = filter(h.failing, func(c *conn) bool {
			var over bool
			n, over = t.end(c, ev, n)
			return !over
		})
	}
	h.busy = len(h.bulks)+len(h.controls)+len(h.waiting)+len(h.wanting)+len(h.failing) > 0
	return n + t.events.take(ev[n:])
}

// filter keeps, in place, the elements for which keep returns true.
func filter(s []*conn, keep func(*conn) bool) []*conn {
	k := s[:0]
	for _, c := range s {
		if keep(c) {
			k = append(k, c)
		}
	}
	clear(s[len(k):])
	return k
}

// stillFull reports EvWritable for a refused Send if there is room now; if not, it returns
// true.
func (t *Transport) stillFull(c *conn) bool {
	if !c.wanting {
		return false
	}
	if !c.out.room(c.wantLen) && !c.out.requestCredit(c.wantLen) {
		return true
	}
	c.wanting = false
	t.events.push(transport.Event{Kind: transport.EvWritable, Slot: c.slot})
	return false
}

// workPending is pending for the pollWork. A blocked sender requests credit again here:
// sleeping is set, so a peer that clears the request rings the bell. If the peer has no
// fast box to this process and cannot ring, this process must not sleep.
func (t *Transport) workPending() bool {
	h := &t.work
	for _, c := range h.wanting {
		if c.out.box != nil && (c.in == nil || c.out.requestCredit(c.wantLen)) {
			return true
		}
	}
	for _, c := range h.controls {
		if c.out.box != nil && (c.in == nil || c.out.requestCredit(0)) {
			return true
		}
	}
	for _, c := range h.waiting {
		if c.answers() {
			return true
		}
	}
	for _, b := range h.bulks {
		if b.pending() {
			return true
		}
	}
	for _, c := range h.failing {
		if c.in != nil && c.in.ready() || t.ended(c) {
			return true
		}
	}
	return false
}

// ended reports whether a failing connection can end: the peer copies nothing any more, and
// need not be told.
func (t *Transport) ended(c *conn) bool { return c.gone || !c.cutPending && t.quiet(c) }

// end takes a failing connection towards EvDown: complete messages first, then the
// transfers, then EvDown. over says that it has ended.
func (t *Transport) end(c *conn, ev []transport.Event, n int) (_ int, over bool) {
	if c.in != nil {
		n = t.drain(c.in, ev, n)
		if c.in.ready() {
			return n, false
		}
		t.removeRing(c.in)
	}
	if !t.ended(c) {
		return n, false
	}
	t.drop(c)
	t.events.push(transport.Event{Kind: transport.EvDown, Slot: c.slot, Err: c.err})
	c.state = connDown
	if t.byProc[c.proc] == c {
		delete(t.byProc, c.proc)
	}
	t.dir.rescan()
	return n, true
}

// drop ends everything of a connection except the fast boxes. Transfers without an answer
// get their EvBulk.
func (t *Transport) drop(c *conn) {
	h := &t.work
	not := func(x *conn) bool { return x != c }
	h.controls, h.wanting, h.waiting = filter(h.controls, not), filter(h.wanting, not), filter(h.waiting, not)
	c.wanting, c.controls = false, controlQueue{}
	c.waiting, c.solos, c.pieces = bulkQueue{}, bulkQueue{}, bulkQueue{}
	err := c.err
	if err == nil {
		err = transport.ErrCancelled
	}
	for _, list := range [...]*bulkList{&c.offers, &c.takes} {
		for list.first != nil {
			t.finish(list.first, 0, err)
		}
	}
}
