// SPDX-License-Identifier: Apache-2.0

package control

// maxStore bounds the keys and values of a job together, in bytes.
const maxStore = 1 << 28

// valueBody is the answer to a Get.
type valueBody struct{ val []byte }

func (*valueBody) kind() kind   { return kReply }
func (m *valueBody) put(e *enc) { e.bytes(m.val) }
func (m *valueBody) get(d *dec) { m.val = d.bytes(MaxValue) }

// put stores a value, which the state owns from now on, and wakes who waits
// for it.
func (s *state) put(p *proc, id uint32, key string, val []byte) {
	if key == "" {
		s.refuse(p, id, refused("empty key"))
		return
	}
	size := s.storeBytes + len(key) + len(val)
	if old, ok := s.store[key]; ok {
		size -= len(key) + len(old)
	}
	if size > maxStore {
		s.refuse(p, id, refused("store would hold %d bytes, at most %d allowed", size, maxStore))
		return
	}
	s.store[key], s.storeBytes = val, size
	for w := range s.gets[key] {
		s.unpark(w)
		s.answer(w.proc, w.id, &valueBody{val})
	}
	s.answer(p, id, nil)
}

// remove deletes a key.
func (s *state) remove(p *proc, id uint32, key string) {
	val, ok := s.store[key]
	if !ok {
		s.refuse(p, id, notFound("key %q", key))
		return
	}
	delete(s.store, key)
	s.storeBytes -= len(key) + len(val)
	s.answer(p, id, nil)
}

func (s *state) get(p *proc, id uint32, key string, block bool) error {
	val, ok := s.store[key]
	switch {
	case ok:
		s.answer(p, id, &valueBody{val})
	case !block || key == "":
		s.refuse(p, id, notFound("key %q", key))
	case s.ending != "":
		s.refuse(p, id, &withDetail{ErrEnding, s.ending})
	default:
		w := &wait{proc: p, id: id, key: key}
		if err := s.park(w); err != nil {
			return err
		}
		if s.gets[key] == nil {
			s.gets[key] = map[*wait]struct{}{}
		}
		s.gets[key][w] = struct{}{}
	}
	return nil
}

// failGets ends the waiting Gets of p: last was the last other process that
// could have put something.
func (s *state) failGets(p, last *proc) {
	for _, w := range p.reqs {
		if w.key != "" {
			s.unparkWith(w, &GoneError{last.id, last.how})
		}
	}
}
