// SPDX-License-Identifier: Apache-2.0

package head

import (
	"slices"
	"time"

	"gompi/internal/base/group"
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// port is where groups meet: one that accepts, one that connects, in the order in which
// they come. It ends with the process that has opened it.
type port struct {
	name     string
	owner    *proc
	accepts  []*meeting
	connects []*meeting
}

// meeting is a group that waits for another at a port: here, or (out) at one of another
// job. in: it is a group of another job.
type meeting struct {
	w       *wait // nil: in
	port    *port // nil: out
	accepts bool
	members wire.Members

	in, out *Neighbor
	number  uint64        // there
	name    string        // of the port; out
	over    bool          // nobody waits for the answer any more; out
	until   time.Duration // who connects has given up, and waits so long for what the other job says; 0: it has not; out
}

// service is a name that a process has published for a port.
type service struct {
	port  string
	owner *proc
}

// maxPorts bounds the ports, and the services, of a job.
const maxPorts = 1 << 16

func (h *Head) portFrame(p *proc, id uint32, m *protocol.Port) {
	if m.Close != "" {
		switch x := h.ports[m.Close]; {
		case x == nil:
			h.refuse(p, id, noPort(m.Close))
		case x.owner != p:
			h.refuse(p, id, protocol.Refused("port %s is another process's", m.Close))
		default:
			h.closePort(x, "was closed")
			h.answer(p, id, &protocol.ValueBody{Val: []byte(m.Close)})
		}
		return
	}
	if len(h.ports) >= maxPorts {
		h.refuse(p, id, protocol.Refused("the job has %d ports", len(h.ports)))
		return
	}
	h.lastPort++
	x := &port{name: h.portName(h.lastPort), owner: p}
	h.ports[x.name] = x
	h.answer(p, id, &protocol.ValueBody{Val: []byte(x.name)})
}

func noPort(name string) error {
	return protocol.NotFound("port %q", protocol.Clip(name, protocol.MaxName))
}

// closePort ends a port; who waits there is refused.
func (h *Head) closePort(x *port, how string) {
	delete(h.ports, x.name)
	for _, m := range slices.Concat(x.accepts, x.connects) {
		h.turnAway(m, protocol.NotFound("port %s %s", x.name, how))
	}
}

// turnAway answers one that waits at a port why it meets nobody.
func (h *Head) turnAway(t *meeting, err error) {
	if t.in == nil {
		h.unparkWith(t.w, err)
		return
	}
	h.stopMeeting(t)
	h.tellNeighbor(t.in, protocol.JobMessage{Kind: protocol.JobRefused, ID: t.number, Text: err.Error()})
}

// dropPorts: p, which takes part in nothing any more, has no ports and no services.
func (h *Head) dropPorts(p *proc) {
	for _, x := range h.ports {
		if x.owner == p {
			h.closePort(x, "is gone with the process that opened it")
		}
	}
	for name, s := range h.services {
		if s.owner == p {
			delete(h.services, name)
		}
	}
}

func (h *Head) meet(p *proc, f *protocol.Frame, m *protocol.Connect) error {
	x, job := h.ports[m.Port], h.jobOfPort(m.Port)
	refused := func() error {
		switch {
		case h.stranger(m.Members) != 0:
			return protocol.Refused("the group has processes of this job and of job %016x: only groups of one job accept and connect, a third job cannot meet both", uint64(h.stranger(m.Members)))
		case job != h.cfg.Job && m.Accepts:
			return protocol.Refused("port %s is of another job: it accepts there", m.Port)
		case job != h.cfg.Job && len(h.hosts) > 1:
			return protocol.Refused("port %s is of another job, and this one is on %d hosts: only jobs on one host meet others", m.Port, len(h.hosts))
		case job != h.cfg.Job && m.Members.Len() > protocol.MaxSpawn:
			return tooMany(m.Members.Len())
		case job == h.cfg.Job && x == nil:
			return noPort(m.Port)
		case m.Members.Index(p.id) < 0:
			return protocol.Refused("process %v is not in the group that it names", p.id)
		case h.turnedDown(p):
			return errTurnedDown(p)
		case h.ending != "":
			return protocol.Ending(h.ending)
		}
		return h.known(m.Members)
	}
	if err := refused(); err != nil {
		h.refuse(p, f.ID, err)
		return nil
	}
	t := &meeting{w: &wait{proc: p, id: f.ID}, port: x, accepts: m.Accepts, members: m.Members}
	if err := h.park(t.w, f); err != nil {
		return err
	}
	h.afterChanges(t.w, slices.Collect(seconds(m.Members.All())), func() {
		if job != h.cfg.Job {
			h.connectOut(t, job, m.Port)
		} else {
			h.arrive(t)
		}
	})
	return nil
}

// arrive lets a group wait at its port, and those meet that can.
func (h *Head) arrive(t *meeting) {
	x := t.port
	if h.ports[x.name] != x { // it was closed while a change was undecided
		h.turnAway(t, noPort(x.name))
		return
	}
	list := &x.connects
	if t.accepts {
		list = &x.accepts
	}
	*list = append(*list, t)
	if t.in == nil {
		t.w.meeting = t
	}
	for len(x.accepts) > 0 && len(x.connects) > 0 {
		a, c := x.accepts[0], x.connects[0]
		both := group.Union(a.members, c.members)
		if both.Len() < a.members.Len()+c.members.Len() {
			h.turnAway(c, protocol.Refused("process %v would be on both sides", group.Intersection(a.members, c.members).At(0)))
			continue
		}
		if about := slices.Collect(seconds(both.All())); h.changing(about) != 0 {
			again := c
			if c.in != nil {
				again = a
			}
			h.stopMeeting(again)
			h.afterChanges(again.w, about, func() { h.arrive(again) })
			continue
		}
		h.introduce(a, c)
	}
}

// introduce answers both of a pair.
func (h *Head) introduce(a, c *meeting) {
	mine, err := h.define(a.members)
	if n := a.members.Len(); err == nil && c.in != nil && n > protocol.MaxSpawn {
		err = tooMany(n)
	}
	if err != nil {
		h.turnAway(c, err)
		return
	}
	h.hold(mine.Number)
	defer h.unhold(mine.Number)
	h.sets[mine.Number].taken = familySerials
	if c.in != nil {
		h.meetIn(a, c, mine)
		return
	}
	theirs, err := h.define(c.members)
	if err != nil {
		h.turnAway(c, err)
		return
	}
	h.hold(theirs.Number)
	defer h.unhold(theirs.Number)
	b := protocol.ConnectBody{Mine: mine, Theirs: theirs, Job: h.cfg.Job, IDs: mine.Number}
	h.answerMeeting(a, &b)
	b.Mine, b.Theirs = theirs, mine
	h.answerMeeting(c, &b)
}

// answerMeeting answers a group of this job.
func (h *Head) answerMeeting(t *meeting, b *protocol.ConnectBody) {
	h.shareAll(t.members, b.Theirs.Number)
	h.unpark(t.w)
	h.answer(t.w.proc, t.w.id, b)
}

// giveAll gives a set to all of some processes that are joined: nobody is to forget its
// members before all of these have heard of them.
func (h *Head) giveAll(members wire.Members, set uint32) {
	for _, id := range members.All() {
		if q := h.proc(id); q != nil && q.state == protocol.Joined {
			h.give(q, set)
		}
	}
}

// shareAll is giveAll, and notes to whom: one of them may forsake the set for all.
func (h *Head) shareAll(members wire.Members, set uint32) {
	h.sets[set].shared = members
	h.giveAll(members, set)
}

// stopMeeting: t waits no more.
func (h *Head) stopMeeting(t *meeting) {
	if t.in == nil {
		t.w.meeting = nil
	} else {
		delete(t.in.theirs, t.number)
	}
	if nb := t.out; nb != nil {
		h.hangUp(nb, t)
		return
	}
	is := func(u *meeting) bool { return u == t }
	if t.port != nil {
		t.port.accepts, t.port.connects = slices.DeleteFunc(t.port.accepts, is), slices.DeleteFunc(t.port.connects, is)
	}
}

func (h *Head) service(p *proc, f *protocol.Frame, m *protocol.Service) error {
	s, id := h.services[m.Name], f.ID
	switch {
	case m.Do == protocol.Publish && s != nil:
		h.refuse(p, id, protocol.Refused("service %q is published already", m.Name))
		return nil
	case m.Do == protocol.Publish && len(h.services) >= maxPorts:
		h.refuse(p, id, protocol.Refused("the job has %d services", len(h.services)))
		return nil
	case m.Do == protocol.Publish:
		s = &service{port: m.Port, owner: p}
		h.services[m.Name] = s
		h.tellNamed(m.Name, s)
	case s == nil && m.Do == protocol.AwaitName:
		w := &wait{proc: p, id: id, name: m.Name}
		if err := h.park(w, f); err != nil {
			return err
		}
		h.awaitNamed(w)
		return nil
	case s == nil:
		h.refuse(p, id, protocol.NotFound("service %q", m.Name))
		return nil
	case m.Do == protocol.Unpublish && (s.owner != p || m.Port != "" && m.Port != s.port):
		h.refuse(p, id, protocol.Refused("service %q was published by another process, or for another port", m.Name))
		return nil
	case m.Do == protocol.Unpublish:
		delete(h.services, m.Name)
	}
	h.answer(p, id, &protocol.ValueBody{Val: []byte(s.port)})
	return nil
}

// awaitNamed keeps a request until the service is published that it names.
func (h *Head) awaitNamed(w *wait) {
	if h.ending != "" {
		h.unparkWith(w, protocol.Ending(h.ending))
		return
	}
	if h.nameless[w.name] == nil {
		h.nameless[w.name] = map[*wait]struct{}{}
	}
	h.nameless[w.name][w] = struct{}{}
}

// tellNamed answers those that wait for a service.
func (h *Head) tellNamed(name string, s *service) {
	for w := range h.nameless[name] {
		h.unpark(w)
		h.answer(w.proc, w.id, &protocol.ValueBody{Val: []byte(s.port)})
	}
}
