// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"

	"gompi/internal/wire"
)

// fence is one meeting of all members. A process that fences the same members
// several times at once enters the next one.
type fence struct {
	key     string
	members wire.Members
	arrived map[uint32]*wait
}

// enterFence lets p arrive. Key is the encoding of m.
func (s *state) enterFence(p *proc, id uint32, m wire.Members, key string) error {
	if err := s.known(m); err != nil {
		s.refuse(p, id, err)
		return nil
	}
	if m.Index(p.id) < 0 {
		s.refuse(p, id, refused("process %v is not in its fence", p.id))
		return nil
	}
	if s.ending != "" {
		s.refuse(p, id, &withDetail{ErrEnding, s.ending})
		return nil
	}
	if gone := s.firstGone(m); gone != nil {
		s.refuse(p, id, gone)
		return nil
	}
	var f *fence
	for _, g := range s.fences[key] {
		if g.arrived[p.id.Serial] == nil {
			f = g
			break
		}
	}
	if f == nil {
		f = &fence{key: key, members: m, arrived: map[uint32]*wait{}}
		s.fences[key] = append(s.fences[key], f)
	}
	w := &wait{proc: p, id: id, fence: f}
	if err := s.park(w); err != nil {
		return err
	}
	f.arrived[p.id.Serial] = w
	if len(f.arrived) == m.Len() {
		for _, w := range f.arrived {
			s.unpark(w)
			s.answer(w.proc, w.id, nil)
		}
	}
	return nil
}

// firstGone returns a member that cannot come any more, or nil.
func (s *state) firstGone(m wire.Members) *GoneError {
	for _, id := range m.All() {
		switch p := s.proc(id); {
		case p == nil:
			return &GoneError{id, howPast}
		case p.state == Finalized || p.state == Exited:
			return &GoneError{id, p.how}
		}
	}
	return nil
}

// leaveFence takes back an arrival; a fence without arrivals is forgotten.
func (s *state) leaveFence(w *wait) {
	f := w.fence
	delete(f.arrived, w.proc.id.Serial)
	if len(f.arrived) > 0 {
		return
	}
	rest := slices.DeleteFunc(s.fences[f.key], func(g *fence) bool { return g == f })
	if len(rest) == 0 {
		delete(s.fences, f.key)
	} else {
		s.fences[f.key] = rest
	}
}

// failFences ends every fence that waits for p.
func (s *state) failFences(p *proc) {
	var failed []*wait
	for _, list := range s.fences {
		for _, f := range list {
			if f.members.Index(p.id) < 0 {
				continue
			}
			for _, w := range f.arrived {
				failed = append(failed, w)
			}
		}
	}
	for _, w := range failed {
		s.unparkWith(w, &GoneError{p.id, p.how})
	}
}
