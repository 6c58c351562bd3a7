// SPDX-License-Identifier: Apache-2.0

package head

import (
	"bytes"
	"slices"

	"gompi/internal/control/protocol"
)

// setStore is what was put into a set, and who waits for what. It goes with the set.
type setStore struct {
	vals  map[string][]byte
	waits map[*wait]struct{}
	calls map[uint64]*setCall // collective Gets of the members that some have not made yet
	// asked are those of other sets' members that wait for something of this one.
	asked map[*setCall]collCall
	bytes int
}

// setCall is one collective Get.
type setCall struct {
	set  uint32 // whose store is asked
	keys []string
	body []byte              // the answer; nil: there is none yet
	made map[uint32]struct{} // who has made the call
	left int                 // members that take part in the job and have not
	wait int                 // who waits for the answer
	size int                 // bytes that count
}

// collCall is where a collective Get is noted.
type collCall struct {
	coll *set
	call uint64
}

// maxSetCalls bounds the collective Gets of a set that some members have made and
// some not, and madeBytes is what counts of such a call for each member.
const (
	maxSetCalls = 1 << 10
	madeBytes   = 16
)

func (t *set) theStore() *setStore {
	if t.store == nil {
		t.store = &setStore{
			vals: map[string][]byte{}, waits: map[*wait]struct{}{}, calls: map[uint64]*setCall{}, asked: map[*setCall]collCall{},
		}
	}
	return t.store
}

// setPut stores a value in a set, and answers the requests that wait for it.
func (h *Head) setPut(p *proc, id uint32, m *protocol.SetPut) {
	t, err := h.living(m.Set)
	if err == nil && m.Put.Key == "" {
		err = protocol.Refused("empty key")
	}
	if err != nil {
		h.refuse(p, id, err)
		return
	}
	key, val := m.Put.Key, bytes.Clone(m.Put.Val)
	s := t.theStore()
	size := entryBytes + len(key) + len(val)
	if old, ok := s.vals[key]; ok {
		size -= entryBytes + len(key) + len(old)
	}
	if n := h.storeBytes + size; n > maxStore && size > 0 {
		h.refuse(p, id, noStore(n))
		return
	}
	h.count(s, size)
	s.vals[key] = val
	for w := range s.waits {
		h.trySet(t, w)
	}
	h.answer(p, id, nil)
}

func (h *Head) count(s *setStore, bytes int) {
	s.bytes += bytes
	h.storeBytes += bytes
}

// setGet answers, or waits.
func (h *Head) setGet(p *proc, f *protocol.Frame, m *protocol.SetGet) error {
	t, err := h.living(m.Set)
	coll := t
	if err == nil && m.Coll != 0 && m.Call != 0 {
		coll, err = h.living(m.Coll)
	}
	switch {
	case err != nil:
	case len(m.Keys) == 0 || slices.Contains(m.Keys, ""):
		err = protocol.Refused("no key, or an empty one")
	case m.Call != 0 && coll.members.Index(p.id) < 0:
		err = protocol.Refused("process %v is no member of the set, and cannot call with all", p.id)
	case m.Wait && h.ending != "":
		err = protocol.Ending(h.ending)
	}
	if err != nil {
		h.refuse(p, f.ID, err)
		return nil
	}
	s := t.theStore()
	w := &wait{proc: p, id: f.ID, set: t, coll: coll, keys: m.Keys, call: m.Call}
	var c *setCall
	if m.Call != 0 {
		if c, err = h.callSet(w, m.Set); err != nil {
			h.refuse(p, f.ID, err)
			return nil
		}
	}
	if !m.Wait || s.has(m.Keys) || c != nil && c.body != nil {
		h.answerSet(w, c)
		return nil
	}
	if err := h.park(w, f); err != nil {
		return err
	}
	if s.waits[w] = struct{}{}; c != nil {
		c.wait++
	}
	return nil
}

// callSet notes a collective call, or finds that others have made another one.
func (h *Head) callSet(w *wait, number uint32) (*setCall, error) {
	calls := w.coll.theStore().calls
	c := calls[w.call]
	switch {
	case c == nil && len(calls) >= maxSetCalls:
		return nil, protocol.Refused("%d collective calls on the set that other members have not made", len(calls))
	case c == nil:
		c = &setCall{set: number, keys: w.keys, made: map[uint32]struct{}{}, size: madeBytes * w.coll.members.Len()}
		for _, k := range w.keys {
			c.size += len(k) + entryBytes
		}
		if n := h.storeBytes + c.size; n > maxStore {
			return nil, noStore(n)
		}
		for _, id := range w.coll.members.All() {
			if h.takesPart(id) {
				c.left++
			}
		}
		h.count(w.coll.store, c.size)
		calls[w.call] = c
		h.calling[w.coll] = struct{}{}
		if w.coll != w.set {
			w.set.store.asked[c] = collCall{w.coll, w.call}
		}
	case c.set != number:
		return nil, protocol.Refused("call %d of the set is for the store of process set %d, and for that of %d by another member", w.call, number, c.set)
	case !slices.Equal(c.keys, w.keys):
		return nil, protocol.Refused("call %d of the set is for %.3q, and for %.3q by another member", w.call, w.keys, c.keys)
	}
	if _, ok := c.made[w.proc.id.Serial]; !ok {
		c.made[w.proc.id.Serial] = struct{}{}
		c.left--
	}
	return c, nil
}

func (s *setStore) has(keys []string) bool {
	for _, k := range keys {
		if _, ok := s.vals[k]; !ok {
			return false
		}
	}
	return true
}

// trySet answers one who waits, if there is an answer.
func (h *Head) trySet(t *set, w *wait) {
	if t.store.has(w.keys) {
		c := w.setCall()
		h.unpark(w)
		h.answerSet(w, c)
	}
}

// setCall is the collective call that a wait is part of; nil: none.
func (w *wait) setCall() *setCall {
	if w.call == 0 || w.coll.store == nil { // nobody may hold the set any more whose members call
		return nil
	}
	return w.coll.store.calls[w.call]
}

// answerSet answers with what is there, or as a collective call was answered before.
func (h *Head) answerSet(w *wait, c *setCall) {
	s := w.set.store
	var body []byte
	if c != nil {
		body = c.body
	}
	if body == nil {
		var err error
		if body, err = s.values(w.keys); err == nil && c != nil {
			if n := h.storeBytes + len(body); n > maxStore {
				err = noStore(n)
			}
		}
		if err != nil {
			h.refuse(w.proc, w.id, err)
			h.sweepCall(w.coll, w.call)
			return
		}
	}
	h.answer(w.proc, w.id, protocol.Encoded(body))
	if c == nil {
		return
	}
	if c.body == nil {
		c.body = body
		if w.setCall() == c {
			c.size += len(body)
			h.count(w.coll.store, len(body))
		}
		delete(s.asked, c)
		for v := range s.waits { // members who wait in the same call
			if v.call == w.call && v.coll == w.coll {
				h.unpark(v)
				h.answerSet(v, c)
			}
		}
	}
	h.sweepCall(w.coll, w.call)
}

// values are those of some keys, as an answer.
func (s *setStore) values(keys []string) ([]byte, error) {
	b := &protocol.ValuesBody{}
	size := 0
	for _, k := range keys {
		v, ok := s.vals[k]
		b.Values = append(b.Values, protocol.Value{There: ok, Val: v})
		size += len(v) + 8
	}
	if size > protocol.MaxBody/2 {
		return nil, protocol.Refused("values of %d bytes together, at most %d at a time", size, protocol.MaxBody/2)
	}
	return protocol.Encode(b), nil
}

// waitsNoMore: a wait in a collective call is over, with an answer or without.
func (h *Head) waitsNoMore(w *wait) {
	if c := w.setCall(); c != nil {
		c.wait--
		h.sweepCall(w.coll, w.call)
	}
}

// sweepCall forgets a collective call that all members have made who take part in the
// job, and none of them waits in it.
func (h *Head) sweepCall(t *set, call uint64) {
	if t.store == nil || call == 0 {
		return
	}
	if c := t.store.calls[call]; c != nil && c.left == 0 && c.wait == 0 {
		if in := h.sets[c.set]; in != nil && in.store != nil {
			delete(in.store.asked, c)
		}
		h.dropCall(t, call, c)
	}
}

func (h *Head) dropCall(t *set, call uint64, c *setCall) {
	h.count(t.store, -c.size)
	delete(t.store.calls, call)
	if len(t.store.calls) == 0 {
		delete(h.calling, t)
	}
}

// callsNoMore: p takes part in nothing any more, and makes no collective call.
func (h *Head) callsNoMore(p *proc) {
	for t := range h.calling {
		if t.members.Index(p.id) < 0 {
			continue
		}
		for call, c := range t.store.calls {
			if _, ok := c.made[p.id.Serial]; !ok {
				c.left--
				h.sweepCall(t, call)
			}
		}
	}
}

// dropStore ends the store of a set that is gone.
func (h *Head) dropStore(number uint32, t *set) {
	s := t.store
	if s == nil {
		return
	}
	for w := range s.waits {
		h.unparkWith(w, protocol.SetGone("%q", protocol.SetURI(h.cfg.Job, number)))
	}
	for _, c := range s.calls {
		if in := h.sets[c.set]; in != nil && in.store != nil {
			delete(in.store.asked, c)
		}
	}
	for c, at := range s.asked { // who has not called yet will find the set gone, too
		if at.coll.store != nil && at.coll.store.calls[at.call] == c {
			h.dropCall(at.coll, at.call, c)
		}
	}
	h.count(s, -s.bytes)
	delete(h.calling, t)
	t.store = nil
}
