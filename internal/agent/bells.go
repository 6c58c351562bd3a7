// SPDX-License-Identifier: Apache-2.0

package agent

import "gompi/internal/control"

// bellShift makes groups of processes that have a bell in common. The kernel lets no
// more than 100 sleepers have one: bell, two epolls of each and that of Go are a path
// of length 3.
const bellShift = 5

// bell is that of a group of processes of this host, which wait for something on the
// pages of sets: who has written there rings its own, and the agent, which hears of it,
// the others. Nobody takes away what was written: who waits is told of each write.
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
		control.CloseFiles(b.fd)
		delete(a.bells, bellOf(p.serial))
	}
}

// ringBells wakes the members of a page that may wait for something there, but for
// those whose bell was rung.
func (a *Agent) ringBells(g *page, rung int64) {
	last := int64(-1)
	for _, id := range g.members.All() {
		k := int64(bellOf(id.Serial))
		if k == last || k == rung {
			continue
		}
		last = k
		if b := a.bells[uint32(k)]; b != nil {
			control.Ring(b.fd)
		}
	}
}
