// SPDX-License-Identifier: Apache-2.0

package head

import (
	"slices"

	"gompi/internal/control"
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
	body []byte // the answer, nil: it is still waited for
	had  map[uint32]struct{}
}

// collCall is where a collective Get is noted.
type collCall struct {
	coll *set
	call uint64
}

// maxSetCalls bounds the collective Gets of a set that some members have made and
// some not.
const maxSetCalls = 1 << 10

func (t *set) theStore() *setStore {
	if t.store == nil {
		t.store = &setStore{
			vals: map[string][]byte{}, waits: map[*wait]struct{}{}, calls: map[uint64]*setCall{}, asked: map[*setCall]collCall{},
		}
	}
	return t.store
}

// setPut stores a value in a set, and wakes who waits for it. The value is the
// state's from now on.
func (h *Head) setPut(p *proc, id uint32, m *control.SetPut) {
	t, err := h.living(m.Set)
	if err == nil && m.Put.Key == "" {
		err = control.Refused("empty key")
	}
	if err != nil {
		h.refuse(p, id, err)
		return
	}
	key, val := m.Put.Key, m.Put.Val
	s := t.theStore()
	size := len(key) + len(val)
	if old, ok := s.vals[key]; ok {
		size -= len(key) + len(old)
	}
	if h.storeBytes+size > maxStore {
		h.refuse(p, id, control.Refused("store would hold %d bytes, at most %d allowed", h.storeBytes+size, maxStore))
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
func (h *Head) setGet(p *proc, f *control.Frame, m *control.SetGet) error {
	t, err := h.living(m.Set)
	coll := t
	if err == nil && m.Coll != 0 && m.Call != 0 {
		coll, err = h.living(m.Coll)
	}
	switch {
	case err != nil:
	case len(m.Keys) == 0 || slices.Contains(m.Keys, ""):
		err = control.Refused("no key, or an empty one")
	case m.Call != 0 && coll.members.Index(p.id) < 0:
		err = control.Refused("process %v is no member of the set, and cannot call with all", p.id)
	case m.Wait && h.ending != "":
		err = control.Ending(h.ending)
	}
	if err != nil {
		h.refuse(p, f.ID, err)
		return nil
	}
	s := t.theStore()
	w := &wait{proc: p, id: f.ID, set: t, coll: coll, keys: m.Keys, call: m.Call}
	if m.Call != 0 {
		if err := h.callSet(w, m.Set); err != nil {
			h.refuse(p, f.ID, err)
			return nil
		}
	}
	c := coll.theStore().calls[m.Call]
	if !m.Wait || s.has(m.Keys) || c != nil && c.body != nil {
		h.answerSet(w)
		return nil
	}
	if err := h.park(w, f); err != nil {
		return err
	}
	s.waits[w] = struct{}{}
	return nil
}

// callSet notes a collective call, or finds that others have made another one.
func (h *Head) callSet(w *wait, number uint32) error {
	calls := w.coll.theStore().calls
	switch c := calls[w.call]; {
	case c == nil && len(calls) >= maxSetCalls:
		return control.Refused("%d collective calls on the set that other members have not made", len(calls))
	case c == nil:
		c = &setCall{set: number, keys: w.keys, had: map[uint32]struct{}{}}
		calls[w.call] = c
		if w.coll != w.set {
			w.set.store.asked[c] = collCall{w.coll, w.call}
		}
	case c.set != number:
		return control.Refused("call %d of the set is for the store of process set %d, and for that of %d by another member", w.call, number, c.set)
	case !slices.Equal(c.keys, w.keys):
		return control.Refused("call %d of the set is for %.3q, and for %.3q by another member", w.call, w.keys, c.keys)
	}
	return nil
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
		h.unpark(w)
		h.answerSet(w)
	}
}

// answerSet answers with what is there, or as a collective call was answered before.
func (h *Head) answerSet(w *wait) {
	s := w.set.store
	var c *setCall
	if w.coll.store != nil { // nobody may hold the set any more whose members call
		c = w.coll.store.calls[w.call]
	}
	var body []byte
	if c != nil {
		body = c.body
	}
	if body == nil {
		b := &control.ValuesBody{}
		size := 0
		for _, k := range w.keys {
			v, ok := s.vals[k]
			b.Values = append(b.Values, control.Value{There: ok, Val: v})
			size += len(v) + 8
		}
		if size > control.MaxBody/2 {
			h.refuse(w.proc, w.id, control.Refused("values of %d bytes together, at most %d at a time", size, control.MaxBody/2))
			return
		}
		body = control.Encode(b)
	}
	h.send(w.proc, control.AppendFrame(nil, w.id, 0, &control.Reply{Body: body}))
	if c == nil {
		return
	}
	if c.body == nil {
		c.body = body
		h.count(w.coll.store, len(body))
		delete(s.asked, c)
		for v := range s.waits { // members who wait in the same call
			if v.call == w.call && v.coll == w.coll {
				h.unpark(v)
				h.answerSet(v)
			}
		}
	}
	c.had[w.proc.id.Serial] = struct{}{}
	h.sweepCall(w.coll, w.call)
}

// sweepCall forgets a collective call that all members have made who live.
func (h *Head) sweepCall(t *set, call uint64) {
	c := t.store.calls[call]
	if c == nil || c.body == nil {
		return
	}
	for _, id := range t.members.All() {
		if _, ok := c.had[id.Serial]; ok {
			continue
		}
		if q := h.proc(id); q != nil && q.state <= control.Joined {
			return
		}
	}
	h.count(t.store, -len(c.body))
	delete(t.store.calls, call)
}

// dropStore ends the store of a set that is gone.
func (h *Head) dropStore(number uint32, t *set) {
	s := t.store
	if s == nil {
		return
	}
	for w := range s.waits {
		h.unparkWith(w, control.SetGone("%q", control.SetURI(h.cfg.Job, number)))
	}
	for _, c := range s.calls {
		if in := h.sets[c.set]; in != nil && in.store != nil {
			delete(in.store.asked, c)
		}
	}
	for c, at := range s.asked { // who has not called yet will find the set gone, too
		if at.coll.store != nil && at.coll.store.calls[at.call] == c {
			delete(at.coll.store.calls, at.call)
		}
	}
	h.count(s, -s.bytes)
	t.store = nil
}
