// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/base/wire"
	"gompi/internal/engine/match"
	"gompi/transport"
)

// bell wakes another process of this host that sleeps while it waits for memory that it
// shares with this one. It needs no connection.
type bell struct {
	bell transport.Bell // nil until it has been fetched
	due  bool           // ring it as soon as it has been fetched
}

// wakeMember makes a rank that may sleep look at its areas. If there is a connection, an
// empty envelope does that. Otherwise this process rings the rank's bell: the one that the
// rank has named in the area b (which may be nil), or the bell in its contact.
func (nt *network) wakeMember(c *Context, b *area, rank int) {
	proc := c.Members.At(rank)
	if p := nt.peers[proc]; p != nil && p.state == peerUp {
		nt.control(p, match.NewKey(c.ID, 0, 0, 0), kindCredit, 0, 0)
		return
	}
	if nt.process.closed || nt.live.dead[proc] != nil {
		return
	}
	w := nt.bells[proc]
	if w == nil {
		if nt.bells == nil {
			nt.bells = map[wire.ProcID]*bell{}
		}
		w = &bell{}
		nt.bells[proc] = w
		if b != nil {
			w.bell = nt.namedBell(proc, b.Bell(rank))
		}
		if w.bell == nil {
			go nt.fetchBell(proc, w)
		}
	}
	if w.due = w.bell == nil; !w.due {
		w.bell.Ring()
	}
}

// namedBell returns the bell that a process has named, or nil if the name leads to none. It
// sends no request.
func (nt *network) namedBell(proc wire.ProcID, name [2]uint64) transport.Bell {
	s := nt.sharer()
	if s == nil || name == [2]uint64{} {
		return nil
	}
	b, err := s.NamedBell(proc, name)
	if err != nil {
		return nil
	}
	return b
}

// fetchBell fetches a bell from the control plane, and rings it if that is due. If there is
// no bell, a message wakes the process.
func (nt *network) fetchBell(proc wire.ProcID, b *bell) {
	contact, err := nt.fetchContact(proc)
	nt.process.mu.Lock()
	defer nt.process.mu.Unlock()
	gone := nt.process.closed || nt.bells[proc] != b
	if err == nil && gone {
		closeContact(contact)
	}
	if gone {
		return
	}
	if err == nil {
		b.bell, err = nt.sharer().Bell(contact)
	}
	if err != nil {
		delete(nt.bells, proc)
		nt.control(nt.peerOf(proc), match.NewKey(wire.ContextID{Creator: nt.process.cfg.Self}, 0, 0, 0), kindCredit, 0, 0)
		return
	}
	if b.due {
		b.due = false
		b.bell.Ring()
	}
}

// dropBell forgets the bell of a process that has ended.
func (nt *network) dropBell(proc wire.ProcID) {
	if b := nt.bells[proc]; b != nil {
		delete(nt.bells, proc)
		if b.bell != nil {
			b.bell.Close()
		}
	}
}

func (nt *network) dropBells() {
	for proc := range nt.bells {
		nt.dropBell(proc)
	}
}
