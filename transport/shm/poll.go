// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"gompi/transport"
)

const (
	maxHot   = 8
	coldTurn = 4 // cold rings looked at by each Poll
)

// Poll gives back what the last Poll delivered, takes in new peers and
// messages, and copies at most one chunk of a bulk transfer. A ring that has
// been silent for a while may be looked at only once in some Polls when there
// are more than eight; Arm looks at all.
func (t *Transport) Poll(ev []transport.Event) int {
	if len(t.delivered) != 0 {
		t.release()
	}
	if len(t.doomed)+len(t.zombies) != 0 {
		t.reapRetired()
		t.freeDoomed()
	}
	if t.dir.changed() {
		t.scanDirectory()
	}
	n := 0
	if !t.events.empty() {
		n = t.events.take(ev)
	}
	if t.full {
		// A flood from the hot rings does not keep the others waiting.
		n = t.doChores(ev, t.pollCold(ev, n))
		t.full = false
	}
	n = t.pollHot(ev, n)
	if len(t.rings) > t.hot {
		n = t.pollCold(ev, n)
	}
	if t.chores.busy {
		n = t.doChores(ev, n)
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

func (t *Transport) pollHot(ev []transport.Event, n int) int {
	hot := t.rings[:t.hot]
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

func (t *Transport) pollCold(ev []transport.Event, n int) int {
	for range min(coldTurn, len(t.rings)-t.hot) {
		if n == len(ev) {
			break
		}
		if t.coldNext < t.hot || t.coldNext >= len(t.rings) {
			t.coldNext = t.hot
		}
		r := t.rings[t.coldNext]
		t.coldNext++
		if r.comes() {
			n = t.drain(r, ev, n)
			t.warm(r)
		}
	}
	return n
}

// warm makes r hot, in the place of the ring that has been hot for longest.
func (t *Transport) warm(r *inRing) {
	if r.index < t.hot {
		return
	}
	if t.hotVictim >= t.hot {
		t.hotVictim = 0
	}
	t.swapRings(r.index, t.hotVictim)
	t.hotVictim++
}

func (t *Transport) swapRings(i, j int) {
	a, b := t.rings[i], t.rings[j]
	t.rings[i], t.rings[j] = b, a
	a.index, b.index = j, i
}

func (t *Transport) addRing(r *inRing) {
	r.index = len(t.rings)
	t.rings = append(t.rings, r)
	t.hot = min(maxHot, len(t.rings))
}

// removeRing stops looking at r; it may have been removed before.
func (t *Transport) removeRing(r *inRing) {
	if r.index < 0 {
		return
	}
	last := len(t.rings) - 1
	t.swapRings(r.index, last)
	t.rings[last] = nil
	t.rings = t.rings[:last]
	t.hot = min(maxHot, last)
	r.index = -1
	for i, d := range t.delivered {
		if d == r {
			t.delivered = append(t.delivered[:i], t.delivered[i+1:]...)
			break
		}
	}
	r.dirty = false
	// A fast box that somebody still holds shows nothing any more.
	r.next, r.seq, r.duplex, r.half = &t.silence, 1, false, nil
}

// Arm sets the word that makes peers ring the bell, then looks everywhere
// once more.
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

// Disarm ends Arm. It always quiets the bell: one that was late for the last
// sleep would end every following one.
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
			t.warm(r)
			return true
		}
	}
	return t.chores.busy && t.choresPending()
}

// chores is what a Poll does beside looking at rings.
type chores struct {
	busy    bool // any of the lists is not empty
	bulks   []*bulk
	letters []*conn // control messages wait for room
	waiting []*conn // what was accepted waits for answers to be possible
	wanting []*conn // Send answered Full
	failing []*conn // EvDown is to come
}

func (t *Transport) doChores(ev []transport.Event, n int) int {
	h := &t.chores
	if !h.busy {
		return n
	}
	h.letters = filter(h.letters, func(c *conn) bool { return !c.flush() })
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
	h.busy = len(h.bulks)+len(h.letters)+len(h.waiting)+len(h.wanting)+len(h.failing) > 0
	return n + t.events.take(ev[n:])
}

// filter keeps in place what keep says.
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

// stillFull answers a Send that was refused, if there is room now.
func (t *Transport) stillFull(c *conn) bool {
	if !c.wanting {
		return false
	}
	if !c.out.room(c.wantLen) && !c.out.beg(c.wantLen) {
		return true
	}
	c.wanting = false
	t.events.push(transport.Event{Kind: transport.EvWritable, Slot: c.slot})
	return false
}

// choresPending is pending for the chores. A blocked sender begs again here:
// with sleeping set, whoever takes its plea away will ring. Where the peer cannot ring us
// because it has no fast box to us, we must not sleep.
func (t *Transport) choresPending() bool {
	h := &t.chores
	for _, c := range h.wanting {
		if c.out.box != nil && (c.in == nil || c.out.beg(c.wantLen)) {
			return true
		}
	}
	for _, c := range h.letters {
		if c.out.box != nil && (c.in == nil || c.out.beg(0)) {
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

// ended reports whether nothing keeps a failing connection: a copy of the
// peer's, or that it must be told.
func (t *Transport) ended(c *conn) bool { return c.gone || !c.untold && t.quiet(c) }

// end takes a failing connection towards EvDown: what came whole, then the
// transfers, then EvDown. over: nothing more is to do.
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
	t.dir.again()
	return n, true
}

// drop ends everything of a connection but the fast boxes; unanswered transfers
// get their EvBulk.
func (t *Transport) drop(c *conn) {
	h := &t.chores
	not := func(x *conn) bool { return x != c }
	h.letters, h.wanting, h.waiting = filter(h.letters, not), filter(h.wanting, not), filter(h.waiting, not)
	c.wanting, c.letters = false, letters{}
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
