// SPDX-License-Identifier: Apache-2.0

package head

import (
	"bytes"

	"gompi/internal/control/protocol"
)

// maxStore bounds the keys and values of a job together, in bytes, with what is kept for
// collective calls of them; an entry of a table counts as entryBytes beside what it holds.
const (
	maxStore   = 1 << 28
	entryBytes = 64
)

func noStore(bytes int) error {
	return protocol.Refused("store would hold %d bytes, at most %d allowed", bytes, maxStore)
}

// put stores a value, and answers the requests that wait for it.
func (h *Head) put(p *proc, id uint32, m *protocol.Put) {
	key, val := m.Key, bytes.Clone(m.Val)
	if key == "" {
		h.refuse(p, id, protocol.Refused("empty key"))
		return
	}
	size := entryBytes + len(key) + len(val)
	if old, ok := h.store[key]; ok {
		size -= entryBytes + len(key) + len(old)
	}
	if n := h.storeBytes + size; n > maxStore && size > 0 {
		h.refuse(p, id, noStore(n))
		return
	}
	h.storeBytes += size
	h.store[key] = val
	for w := range h.gets[key] {
		h.unpark(w)
		h.answer(w.proc, w.id, &protocol.ValueBody{Val: val})
	}
	h.answer(p, id, nil)
}

// remove deletes a key.
func (h *Head) remove(p *proc, id uint32, m *protocol.Text) {
	key := m.Text
	val, ok := h.store[key]
	if !ok {
		h.refuse(p, id, protocol.NotFound("key %q", key))
		return
	}
	delete(h.store, key)
	h.storeBytes -= entryBytes + len(key) + len(val)
	h.answer(p, id, nil)
}

// get answers with a value; a blocking request waits until there is one.
func (h *Head) get(p *proc, f *protocol.Frame, m *protocol.Get) error {
	id, key := f.ID, m.Key
	val, ok := h.store[key]
	switch {
	case ok:
		h.answer(p, id, &protocol.ValueBody{Val: val})
	case !m.Wait || key == "":
		h.refuse(p, id, protocol.NotFound("key %q", key))
	case h.ending != "":
		h.refuse(p, id, protocol.Ending(h.ending))
	default:
		w := &wait{proc: p, id: id, key: key}
		if err := h.park(w, f); err != nil {
			return err
		}
		if h.gets[key] == nil {
			h.gets[key] = map[*wait]struct{}{}
		}
		h.gets[key][w] = struct{}{}
	}
	return nil
}

// failGets ends the waiting Gets of p: last was the last other process that
// could have put something. Of a newcomer that was turned down the end of the change does.
func (h *Head) failGets(p, last *proc) {
	if h.turnedDown(p) {
		return
	}
	for _, w := range p.reqs {
		if w.key != "" || w.set != nil {
			h.unparkWith(w, &protocol.GoneError{Proc: last.id, How: last.how})
		}
	}
}
