// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"gompi/internal/control"
	"gompi/internal/wire"
)

// common is memory for the members of a communicator that are on this host, for
// which not all of them have asked yet. Afterwards it is theirs alone: it lasts
// as long as they map it.
type common struct {
	files   *Files
	members wire.Members
	have    map[uint32]struct{} // who was given it and uses it
	asked   map[uint32]struct{} // who was given it
	left    int                 // who may still ask
}

// enterCommon gives p the memory that key stands for: that of who asked first.
func (a *Agent) enterCommon(p *Proc, id uint32, m *control.Common, key string) {
	if p.state != control.Joined {
		a.refuse(p, id, control.Refused("process %v is %v", a.id(p), p.state))
		return
	}
	if m.Members.Index(a.id(p)) < 0 || m.Bytes < 1 {
		a.refuse(p, id, control.Refused("%d bytes of common memory of others", m.Bytes))
		return
	}
	c := a.commons[key]
	if c == nil {
		f, err := newCommon(m.Bytes)
		if err != nil {
			a.refuse(p, id, err)
			return
		}
		c = &common{files: f, members: m.Members, have: map[uint32]struct{}{}, asked: map[uint32]struct{}{}}
		for _, q := range m.Members.All() {
			if s := a.procs[q.Serial]; s != nil && q.Job == a.job && (s.state == control.Starting || s.state == control.Joined) {
				c.left++
			}
		}
		a.commons[key] = c
	}
	a.sendFiles(p, c.files, control.AppendFrame(nil, id, control.FrameFDs, &control.Reply{}))
	if _, again := c.asked[p.serial]; !again {
		c.asked[p.serial], c.have[p.serial] = struct{}{}, struct{}{}
		c.left--
	}
	a.reapCommon(key, c)
}

// leaveCommon: p uses the memory no more.
func (a *Agent) leaveCommon(p *Proc, key string) {
	if c := a.commons[key]; c != nil {
		delete(c.have, p.serial)
		a.reapCommon(key, c)
	}
}

// endCommons: p, which was starting or joined, asks for nothing more.
func (a *Agent) endCommons(p *Proc) {
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
func (a *Agent) reapCommon(key string, c *common) {
	if c.left > 0 && len(c.have) > 0 {
		return
	}
	c.files.Release()
	delete(a.commons, key)
}
