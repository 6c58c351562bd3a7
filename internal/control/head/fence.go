// SPDX-License-Identifier: Apache-2.0

package head

import (
	"slices"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// fence is one meeting of all members. A process that fences the same members
// several times at once enters the next one.
type fence struct {
	key     string
	members wire.Members
	arrived map[uint32]*wait
}

// enterFence lets p arrive at the fence of these members. The body of the frame is the key.
func (h *Head) enterFence(p *proc, frame *protocol.Frame, list *protocol.Members) error {
	id, key, m := frame.ID, string(frame.Body), list.Members
	if err := h.known(m); err != nil {
		h.refuse(p, id, err)
		return nil
	}
	if m.Index(p.id) < 0 {
		h.refuse(p, id, protocol.Refused("process %v is not in its fence", p.id))
		return nil
	}
	if h.ending != "" {
		h.refuse(p, id, protocol.Ending(h.ending))
		return nil
	}
	if gone := h.firstGone(m); gone != nil {
		h.refuse(p, id, gone)
		return nil
	}
	var f *fence
	for _, g := range h.fences[key] {
		if g.arrived[p.id.Serial] == nil {
			f = g
			break
		}
	}
	if f == nil {
		f = &fence{key: key, members: m, arrived: map[uint32]*wait{}}
		h.fences[key] = append(h.fences[key], f)
	}
	w := &wait{proc: p, id: id, fence: f}
	if err := h.park(w, frame); err != nil {
		h.leaveFence(w)
		return err
	}
	f.arrived[p.id.Serial] = w
	if len(f.arrived) == m.Len() {
		for _, w := range f.arrived {
			h.unpark(w)
			h.answer(w.proc, w.id, nil)
		}
	}
	return nil
}

// firstGone returns a member that cannot come any more, or nil.
func (h *Head) firstGone(m wire.Members) *protocol.GoneError {
	for _, id := range m.All() {
		switch p := h.proc(id); {
		case p == nil:
			return &protocol.GoneError{Proc: id, How: howPast}
		case p.state == protocol.Finalized || p.state == protocol.Exited:
			return &protocol.GoneError{Proc: id, How: p.how}
		}
	}
	return nil
}

// leaveFence takes back an arrival; a fence without arrivals is forgotten.
func (h *Head) leaveFence(w *wait) {
	f := w.fence
	delete(f.arrived, w.proc.id.Serial)
	if len(f.arrived) > 0 {
		return
	}
	rest := slices.DeleteFunc(h.fences[f.key], func(g *fence) bool { return g == f })
	if len(rest) == 0 {
		delete(h.fences, f.key)
	} else {
		h.fences[f.key] = rest
	}
}

// failFences ends every fence that waits for p.
func (h *Head) failFences(p *proc) {
	var failed []*wait
	for _, list := range h.fences {
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
		h.unparkWith(w, &protocol.GoneError{Proc: p.id, How: p.how})
	}
}
