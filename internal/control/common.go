// SPDX-License-Identifier: Apache-2.0

package control

import "gompi/internal/wire"

// common is memory for the members of a communicator that are on this host, for
// which not all of them have asked yet. Afterwards it is theirs alone: it lasts
// as long as they map it.
type common struct {
	files   *files
	members wire.Members
	have    map[uint32]struct{} // who was given it and uses it
	asked   map[uint32]struct{} // who was given it
	left    int                 // who may still ask
}

// enterCommon gives p the memory that key stands for: that of who asked first.
func (a *agent) enterCommon(p *seat, id uint32, m *commonMsg, key string) {
	if p.state != Joined {
		a.refuse(p, id, refused("process %v is %v", a.id(p), p.state))
		return
	}
	if m.members.Index(a.id(p)) < 0 || m.bytes < 1 {
		a.refuse(p, id, refused("%d bytes of common memory of others", m.bytes))
		return
	}
	c := a.commons[key]
	if c == nil {
		f, err := newCommon(m.bytes)
		if err != nil {
			a.refuse(p, id, err)
			return
		}
		c = &common{files: f, members: m.members, have: map[uint32]struct{}{}, asked: map[uint32]struct{}{}}
		for _, q := range m.members.All() {
			if s := a.seats[q.Serial]; s != nil && q.Job == a.cfg.Job && (s.state == Starting || s.state == Joined) {
				c.left++
			}
		}
		a.commons[key] = c
	}
	a.sendFiles(p, c.files, appendFrame(nil, id, frameFDs, &replyMsg{}))
	if _, again := c.asked[p.serial]; !again {
		c.asked[p.serial], c.have[p.serial] = struct{}{}, struct{}{}
		c.left--
	}
	a.reapCommon(key, c)
}

// leaveCommon: p uses the memory no more.
func (a *agent) leaveCommon(p *seat, key string) {
	if c := a.commons[key]; c != nil {
		delete(c.have, p.serial)
		a.reapCommon(key, c)
	}
}

// endCommons: p, which was starting or joined, asks for nothing more.
func (a *agent) endCommons(p *seat) {
	for key, c := range a.commons {
		delete(c.have, p.serial)
		if _, asked := c.asked[p.serial]; !asked && c.members.Index(a.id(p)) >= 0 {
			c.left--
		}
		a.reapCommon(key, c)
	}
}

// reapCommon forgets memory of which nobody will ask any more, or that nobody
// uses.
func (a *agent) reapCommon(key string, c *common) {
	if c.left > 0 && len(c.have) > 0 {
		return
	}
	c.files.release()
	delete(a.commons, key)
}
