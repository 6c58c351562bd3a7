// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"gompi/internal/base/wire"
	"gompi/internal/control/collmem"
	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

// gift is the memory for shared collectives that the members of a set on this host
// have from the start, without asking. Each holds it; in the memory it says that it
// uses it (collmem.Claim). When the set is gone nobody may begin to, and it is taken back
// from those who have not.
type gift struct {
	set     uint32
	members wire.Members // on this host, by rank there
	extent  *extent
	ready   bool // its pages are there
	over    bool // the set is gone, while they were not
	waiting []func()
}

// give makes the memory of a set for its members here. If there is none for it they
// ask, as for any other.
func (a *Agent) give(set uint32, members wire.Members) {
	r := a.heap.gifts()
	n := members.Len()
	if r == nil || a.gifts[set] != nil {
		return
	}
	var x *extent
	if n > 1 && n <= collmem.MaxRanks {
		x = a.heap.takeOf(r, int64(collmem.HeapBytes(n, true)))
	}
	for _, id := range members.All() {
		if s := a.proc(id); s != nil && s.state <= protocol.Joined {
			if s.shares = true; x != nil {
				a.hold(s, x)
			}
		}
	}
	if x == nil {
		return
	}
	g := &gift{set: set, members: members, extent: x}
	x.gift, a.gifts[set] = g, g
	a.work(x, func(fd int) error {
		if err := a.heap.memory.Reserve(fd, x.off, int64(collmem.AreaBytes(n))); err != nil {
			return err
		}
		return onClaims(fd, x.off, n, func(mem []byte) { collmem.Offer(mem, n, set) })
	}, func(err error) { a.given(g, err) })
}

// given: the pages of a gift are there, or cannot be had.
func (a *Agent) given(g *gift, err error) {
	x, waiting := g.extent, g.waiting
	g.ready, g.waiting = true, nil
	if err != nil || g.over {
		a.endGift(g)
		for _, id := range g.members.All() {
			if s := a.proc(id); s != nil {
				a.leave(s, x)
			}
		}
	}
	if x.holders == 0 && !x.busy {
		a.clear(x)
	}
	for _, f := range waiting {
		f()
	}
	a.late() // changes may begin on pages
}

// endGift: nobody is told of it from here on.
func (a *Agent) endGift(g *gift) {
	delete(a.gifts, g.set)
	g.extent.gift = nil
}

// gives is the gift of a set, once its pages are there; nil: there is none. If they
// are not, then is called later.
func (a *Agent) gives(set uint32, then func()) (g *gift, later bool) {
	g = a.gifts[set]
	if g == nil || g.ready {
		return g, false
	}
	g.waiting = append(g.waiting, then)
	return nil, true
}

// told is what a holder is told of a gift.
func (g *gift) told() protocol.Preallocated {
	if g == nil {
		return protocol.Preallocated{}
	}
	return protocol.Preallocated{Set: g.set, Ranks: g.members.Len(), X: g.extent.name()}
}

// ungive takes back the memory of a set that is gone.
func (a *Agent) ungive(set uint32) {
	g := a.gifts[set]
	switch {
	case g == nil:
		return
	case !g.ready:
		g.over = true
		return
	}
	a.endGift(g)
	x := g.extent
	if x.holders == 0 { // it is being cleared
		return
	}
	holders := make([]*Proc, g.members.Len())
	for i, id := range g.members.All() {
		if s := a.proc(id); s != nil && s.holds[x.place()] == x {
			holders[i] = s
		}
	}
	a.work(x, func(fd int) error {
		return onClaims(fd, x.off, len(holders), func(mem []byte) {
			for i, s := range holders {
				if s != nil && !collmem.Withdraw(mem, i, set) {
					holders[i] = nil
				}
			}
		})
	}, func(err error) {
		for _, s := range holders {
			if s != nil && err == nil { // else they hold it until they end
				a.leave(s, x)
			}
		}
		if x.holders == 0 && !x.busy {
			a.clear(x)
		}
	})
}

// onClaims does something with the claims of so many ranks.
func onClaims(fd int, off int64, ranks int, do func(mem []byte)) error {
	mem, err := segment.Map(fd, off, wholePages(int64(collmem.ClaimsBytes(ranks))), true)
	if err != nil {
		return err
	}
	do(mem)
	return segment.Unmap(mem)
}

// welcome tells s what the head says, and what it has been given.
func (a *Agent) welcome(s *Proc, head []byte) {
	m := protocol.Welcomed{Welcome: head}
	for _, x := range s.holds {
		if x.gift == nil {
			continue
		}
		g, later := a.gives(x.gift.set, func() { a.welcomeLate(s) })
		if later {
			s.welcome = head
			return
		}
		m.Preallocated = append(m.Preallocated, g.told())
	}
	s.welcomed = true
	files := s.files
	if !s.shares || files == nil || files.bell < 0 {
		a.sendWelcome(s, files, protocol.FrameFDs, &m)
		return
	}
	r := a.heap.gifts()
	m.Arena = wire.ArenaRange{Arena: r.number, Total: r.bytes}
	all := files.with(r.files)
	a.sendWelcome(s, all, protocol.MostFDs, &m)
	all.Release()
}

// sendWelcome welcomes s, or says why it cannot join.
func (a *Agent) sendWelcome(s *Proc, f *Files, fds int, m *protocol.Welcomed) {
	frame, err := protocol.AppendFrame(nil, 0, fds, m)
	if err != nil {
		a.out = append(a.out, Action{To: s.serial, shut: err.Error()})
		return
	}
	a.sendFiles(s, f, frame)
}

// welcomeLate is welcome when what that waited for has come.
func (a *Agent) welcomeLate(s *Proc) {
	head, after := s.welcome, s.after
	if head == nil {
		return
	}
	s.welcome, s.after = nil, nil
	a.welcome(s, head)
	for i := range after {
		a.send(s, after[i])
	}
}
