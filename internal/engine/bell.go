// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/match"
	"gompi/internal/wire"
	"gompi/transport"
)

// bell is how another process of this host is woken that sleeps over memory which
// it shares with this one. It takes no connection.
type bell struct {
	bell transport.Bell // nil until it has come
	due  bool           // it is to be rung then
}

// wakeMember makes a rank that may sleep look at its boards: by an envelope that says
// nothing where there is a connection, else by its bell.
func (nt *network) wakeMember(c *Context, rank int) {
	proc := c.Members.At(rank)
	if p := nt.peers[proc]; p != nil && p.state == peerUp {
		nt.control(p, match.NewKey(c.ID, 0, 0, 0), kindCredit, 0, 0)
		return
	}
	if nt.process.closed || nt.live.dead[proc] != nil {
		return
	}
	b := nt.bells[proc]
	if b == nil {
		if nt.bells == nil {
			nt.bells = map[wire.ProcID]*bell{}
		}
		b = &bell{}
		nt.bells[proc] = b
		go nt.fetchBell(proc, b)
	}
	if b.due = b.bell == nil; !b.due {
		b.bell.Ring()
	}
}

// fetchBell asks for a bell, and rings it if that is due. Without one the process
// is woken by a message.
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
