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
func (e *Engine) wakeMember(c *Context, rank int) {
	proc := c.Members.At(rank)
	if p := e.peers[proc]; p != nil && p.state == peerUp {
		e.control(p, match.NewKey(c.ID, 0, 0, 0), kindCredit, 0, 0)
		return
	}
	if e.closed || e.dead[proc] != nil {
		return
	}
	b := e.bells[proc]
	if b == nil {
		if e.bells == nil {
			e.bells = map[wire.ProcID]*bell{}
		}
		b = &bell{}
		e.bells[proc] = b
		go e.fetchBell(proc, b)
	}
	if b.due = b.bell == nil; !b.due {
		b.bell.Ring()
	}
}

// fetchBell asks for a bell, and rings it if that is due. Without one the process
// is woken by a message.
func (e *Engine) fetchBell(proc wire.ProcID, b *bell) {
	contact, err := e.fetchContact(proc)
	e.mu.Lock()
	defer e.mu.Unlock()
	gone := e.closed || e.bells[proc] != b
	if err == nil && gone {
		closeContact(contact)
	}
	if gone {
		return
	}
	if err == nil {
		b.bell, err = e.sharer().Bell(contact)
	}
	if err != nil {
		delete(e.bells, proc)
		e.control(e.peerOf(proc), match.NewKey(wire.ContextID{Creator: e.cfg.Self}, 0, 0, 0), kindCredit, 0, 0)
		return
	}
	if b.due {
		b.due = false
		b.bell.Ring()
	}
}

// dropBell forgets the bell of a process that has ended.
func (e *Engine) dropBell(proc wire.ProcID) {
	if b := e.bells[proc]; b != nil {
		delete(e.bells, proc)
		if b.bell != nil {
			b.bell.Close()
		}
	}
}

func (e *Engine) dropBells() {
	for proc := range e.bells {
		e.dropBell(proc)
	}
}
