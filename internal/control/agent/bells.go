// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	"gompi/internal/control/protocol"
)

// bellShift makes groups of processes that have a bell in common. The kernel lets no
// more than 100 sleepers have one: bell, two epolls of each and that of Go are a path
// of length 3.
const bellShift = 5

// bell is that of a group of processes of this host, which wait for something on the
// pages of sets: who has written there rings its own, and the agent, which hears of it,
// all. Nobody takes away what was written: who waits is told of each write.
type bell struct {
	fd    int
	users int // processes that were given it
}

func bellOf(serial uint32) uint32 { return serial >> bellShift }

// bellFor is the bell of p's group beside an arena, as files of their own.
func (a *Agent) bellFor(p *Proc, r *arena) (*Files, error) {
	b := a.bells[bellOf(p.serial)]
	if b == nil {
		fd, err := newBell()
		if err != nil {
			return nil, err
		}
		b = &bell{fd: fd}
		a.bells[bellOf(p.serial)] = b
	}
	if !p.hears {
		p.hears = true
		b.users++
	}
	return pairOf(r.files.segment, b.fd)
}

// deaf: nothing of p waits any more.
func (a *Agent) deaf(p *Proc) {
	b := a.bells[bellOf(p.serial)]
	if !p.hears {
		return
	}
	p.hears = false
	if b.users--; b.users == 0 {
		protocol.CloseFiles(b.fd)
		delete(a.bells, bellOf(p.serial))
	}
}

// ring wakes all who wait for something on a page.
func (a *Agent) ring(g *page) { a.ringBells(g, func(uint32) bool { return true }) }

// ringDecided wakes them when a change is decided. Who leaves takes long, and nobody
// waits for that: groups without one that stays come when the page is dropped.
func (a *Agent) ringDecided(g *page) {
	if g.next == nil {
		a.ring(g)
		return
	}
	g.stays = map[uint32]struct{}{}
	for _, id := range g.next.members.All() {
		g.stays[bellOf(id.Serial)] = struct{}{}
	}
	g.stayers = g.next.members.Len()
	a.ringBells(g, func(k uint32) bool { _, ok := g.stays[k]; return ok })
}

// Those whom ringDecided has not woken come later by stayEach for each process that
// stays, and at most by stayMost: until these are back the processors are theirs.
const (
	stayEach = 100 * time.Microsecond
	stayMost = 10 * time.Millisecond
)

// ringRest wakes those whom ringDecided has not.
func (a *Agent) ringRest(g *page) {
	stays := g.stays
	if stays == nil {
		return
	}
	g.stays = nil
	until := min(time.Duration(g.stayers)*stayEach, stayMost)
	a.out = append(a.out, Action{
		Work: func() error { time.Sleep(until); return nil },
		Done: func(error) { a.ringBells(g, func(k uint32) bool { _, ok := stays[k]; return !ok }) },
	})
}

// ringBells rings the bells of the members of a page whose group is wanted.
func (a *Agent) ringBells(g *page, wanted func(group uint32) bool) {
	last := int64(-1)
	for _, id := range g.members.All() {
		k := bellOf(id.Serial)
		if int64(k) == last {
			continue
		}
		last = int64(k)
		if b := a.bells[k]; b != nil && wanted(k) {
			protocol.Ring(b.fd)
		}
	}
}
