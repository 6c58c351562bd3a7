// SPDX-License-Identifier: Apache-2.0

package control

import "gompi/internal/wire"

// common is memory for the members of a communicator, for which not all of them
// have asked yet. Afterwards it is theirs alone: it lasts as long as they map it.
type common struct {
	files   *files
	members wire.Members
	have    map[uint32]struct{} // who was given it and uses it
	asked   map[uint32]struct{} // who was given it
	left    int                 // who may still ask
}

// enterCommon gives p the memory that key stands for: that of who asked first.
func (s *state) enterCommon(p *proc, id uint32, m *commonMsg, key string) {
	if err := s.known(m.members); err != nil {
		s.refuse(p, id, err)
		return
	}
	if m.members.Index(p.id) < 0 || m.bytes < 1 {
		s.refuse(p, id, refused("%d bytes of common memory of others", m.bytes))
		return
	}
	c := s.commons[key]
	if c == nil {
		f, err := newCommon(m.bytes)
		if err != nil {
			s.refuse(p, id, err)
			return
		}
		c = &common{files: f, members: m.members, have: map[uint32]struct{}{}, asked: map[uint32]struct{}{}}
		for _, q := range m.members.All() {
			if x := s.proc(q); x != nil && (x.state == Starting || x.state == Joined) {
				c.left++
			}
		}
		s.commons[key] = c
	}
	s.sendFiles(p, c.files, appendFrame(nil, id, frameFDs, &replyMsg{}))
	if _, again := c.asked[p.id.Serial]; !again {
		c.asked[p.id.Serial], c.have[p.id.Serial] = struct{}{}, struct{}{}
		c.left--
	}
	s.reapCommon(key, c)
}

// leaveCommon: p uses the memory no more.
func (s *state) leaveCommon(p *proc, key string) {
	if c := s.commons[key]; c != nil {
		delete(c.have, p.id.Serial)
		s.reapCommon(key, c)
	}
}

// endCommons: p, which was starting or joined, asks for nothing more.
func (s *state) endCommons(p *proc) {
	for key, c := range s.commons {
		delete(c.have, p.id.Serial)
		if _, asked := c.asked[p.id.Serial]; !asked && c.members.Index(p.id) >= 0 {
			c.left--
		}
		s.reapCommon(key, c)
	}
}

// reapCommon forgets memory of which nobody will ask any more, or that nobody
// uses.
func (s *state) reapCommon(key string, c *common) {
	if c.left > 0 && len(c.have) > 0 {
		return
	}
	c.files.release()
	delete(s.commons, key)
}
