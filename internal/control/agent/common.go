// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// common is a range for the members of a communicator that are on this host, as
// long as some of them may still ask for it. They ask once each; afterwards only
// who holds the range is known.
type common struct {
	key     string
	extent  *extent
	members wire.Members
	asked   map[uint32]struct{} // who has
	left    int                 // who may still ask
	backed  bool                // the pages are there
	waiting []question          // while they are not
}

// question is a request that waits for its answer.
type question struct {
	p    *Proc
	id   uint32
	have uint64 // arenas of which p needs no descriptor
}

// enterCommon gives p the memory of all who ask for the same. The first of them makes it.
func (a *Agent) enterCommon(p *Proc, f protocol.Frame, m *protocol.Common) {
	id, key := f.ID, string(protocol.CommonKey(f.Body))
	if p.state != protocol.Joined {
		a.refuse(p, id, protocol.NotIn(a.id(p), p.state))
		return
	}
	if m.Members.Index(a.id(p)) < 0 || m.First < 1 || m.Bytes < m.First {
		a.refuse(p, id, protocol.Refused("%d bytes of common memory of others, %d of them at once", m.Bytes, m.First))
		return
	}
	c := a.commons[key]
	if c == nil {
		var err error
		if c, err = a.newCommon(m, key); err != nil {
			a.refuse(p, id, err)
			return
		}
	}
	if _, again := c.asked[p.serial]; !again {
		c.asked[p.serial] = struct{}{}
		c.left--
	}
	a.hold(p, c.extent)
	if q := (question{p, id, m.Have}); c.backed {
		a.answer(c, q)
	} else {
		c.waiting = append(c.waiting, q)
	}
	a.reapCommon(c)
}

// newCommon makes memory for who asks first, and those who come after it. All
// who ask before its pages are there get the same answer.
func (a *Agent) newCommon(m *protocol.Common, key string) (*common, error) {
	x, err := a.heap.take(m.Bytes)
	if err != nil {
		return nil, err
	}
	c := &common{key: key, extent: x, members: m.Members, asked: map[uint32]struct{}{}}
	for _, q := range m.Members.All() {
		if s := a.procs[q.Serial]; s != nil && q.Job == a.job && (s.state == protocol.Starting || s.state == protocol.Joined) {
			c.left++
		}
	}
	x.open, a.commons[key] = c, c
	first := m.First
	a.work(x, func(fd int) error { return a.heap.memory.Reserve(fd, x.off, first) }, func(err error) { a.backed(c, err) })
	return c, nil
}

// backed: the pages of c are there, or cannot be had.
func (a *Agent) backed(c *common, err error) {
	x, waiting := c.extent, c.waiting
	c.waiting, c.backed = nil, err == nil
	if err != nil {
		a.forget(c)
	}
	if x.holders == 0 { // all have ended meanwhile
		a.clear(x)
		return
	}
	for _, q := range waiting {
		if err != nil {
			a.refuse(q.p, q.id, err)
			a.leave(q.p, x)
		} else {
			a.answer(c, q)
		}
	}
	a.reapCommon(c)
}

// answer tells p where the memory is.
func (a *Agent) answer(c *common, q question) {
	x := c.extent
	if q.p.holds[x.place()] != x {
		a.refuse(q.p, q.id, protocol.Refused("common memory that was left before it was given"))
		return
	}
	body := &protocol.CommonBody{X: x.name()}
	if q.have>>x.arena.number&1 == 0 {
		a.sendFiles(q.p, x.arena.files, reply(q.id, protocol.FrameFDs, body))
	} else {
		a.send(q.p, Action{Frame: reply(q.id, 0, body)})
	}
}

// leaveCommon: p does not touch the memory any more.
func (a *Agent) leaveCommon(p *Proc, m *protocol.LeaveCommon) {
	if x := p.holds[place{m.Arena, m.Off}]; x != nil {
		a.leave(p, x)
	}
}

// endCommons: p, which was starting or joined, asks for nothing more.
func (a *Agent) endCommons(p *Proc) {
	for _, c := range a.commons {
		if _, asked := c.asked[p.serial]; !asked && c.members.Index(a.id(p)) >= 0 {
			c.left--
		}
		a.reapCommon(c)
	}
}

// reapCommon forgets who has asked when nobody will any more.
func (a *Agent) reapCommon(c *common) {
	if c.left == 0 && c.backed {
		a.forget(c)
	}
}

// forget: who asks from here on gets other memory.
func (a *Agent) forget(c *common) {
	if c.extent.open == c {
		c.extent.open = nil
		delete(a.commons, c.key)
	}
}
