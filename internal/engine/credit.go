// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"gompi/internal/base/credit"
	"gompi/internal/base/wire"
	"gompi/internal/engine/match"
	"gompi/transport"
)

// Flags of a kindCredit frame.
const (
	creditState     = 1 << iota // the other flags hold from now on
	noMoreEager                 // a message beyond the eager credit must be announced
	noMoreEnvelopes             // messages of the context in the key must not even be announced
)

// flow is the flow control of a process: docs/design/016-credit.md.
type flow struct {
	process *process
	net     *network

	credit   credit.Flow
	tight    []*Peer     // peers that were told that there is no more credit
	arrivals arrivalPool // the memory that the credit pays for
}

// creditOf returns the kind of credit that a message uses.
func (k kind) creditOf() credit.Kind {
	if k == kindRTS {
		return credit.Announced
	}
	return credit.Eager
}

// charge counts an unexpected message of n units against the peer's credit.
func (fl *flow) charge(p *Peer, k kind, n int32) bool {
	what := fl.credit.Charge(&p.credit, k.creditOf(), n, p.state == peerDown)
	if what.Over > 0 {
		fl.net.protocol(p, fmt.Errorf("%w: %d bytes beyond the credit", transport.ErrProtocol, what.Over))
		return false
	}
	if what.Filled {
		p.filledBy = p.fills()
	}
	if p.credit.AnyFull() && !p.tight {
		p.tight = true
		fl.tight = append(fl.tight, p)
	}
	if what.Tell {
		fl.returnCredit(p)
	}
	return true
}

// fills returns the context with most announcements of a peer without a receive.
func (p *Peer) fills() (most wire.ContextID) {
	count := map[wire.ContextID]int{}
	for a := range p.announcements.All {
		if key := a.node.Key; a.node.Queued() && key.Plane() == wire.TrafficP2P {
			id := key.Context()
			if count[id]++; count[id] > count[most] {
				most = id
			}
		}
	}
	return most
}

// release returns the credit and memory of an arrival.
func (fl *flow) release(u *arrival) {
	p, k, n := u.peer, u.kind, u.units
	fl.arrivals.put(u)
	fl.giveBack(p, k, fl.credit.Release(&p.credit, k.creditOf(), n, p.state == peerDown))
}

// giveBack returns credit for a message of a peer. For this process itself it does so at
// once.
func (fl *flow) giveBack(p *Peer, k kind, n int32) {
	if fl.credit.GiveBack(&p.credit, k.creditOf(), n) || p.link == fl.net.links[0] {
		fl.returnCredit(p)
	}
}

// returnCredit sends the peer the credit that is due, and the state of this process's
// memory.
func (fl *flow) returnCredit(p *Peer) {
	back := p.credit.Settle()
	flags, key := uint8(creditState), wire.ContextID{}
	if back.NoEager {
		flags |= noMoreEager
	}
	if back.NoEnvelopes {
		flags |= noMoreEnvelopes
		key = p.filledBy
	}
	to := match.NewKey(key, wire.TrafficP2P, 0, back.Envelopes)
	if p.link == fl.net.links[0] {
		fl.credited(p, &envelope{key: to, flags: flags, aux: uint32(back.Eager)})
		if p.hasQueued() {
			fl.process.prog.Wake() // for sends that have waited for it
		}
		return
	}
	fl.net.control(p, to, kindCredit, flags, uint32(back.Eager))
}

// settleUp returns credit to peers that were told that there is no more. This process is
// about to sleep, and nothing may come from them until they have it.
func (fl *flow) settleUp() {
	kept := fl.tight[:0]
	for _, p := range fl.tight {
		if p.state == peerDown || !p.credit.AnyFull() {
			p.tight = false
			continue
		}
		kept = append(kept, p)
		if p.credit.Owes() {
			fl.returnCredit(p)
		}
	}
	clear(fl.tight[len(kept):])
	fl.tight = kept
}

func (fl *flow) overCredit(p *Peer) {
	fl.net.protocol(p, fmt.Errorf("%w: more credit than was used", transport.ErrProtocol))
}

// credited handles a frame of kindCredit.
func (fl *flow) credited(p *Peer, env *envelope) {
	if !fl.credit.Take(&p.credit, env.aux, uint32(env.key.Tag())) {
		fl.overCredit(p)
		return
	}
	if env.flags&creditState != 0 {
		p.credit.SetExhausted(env.flags&noMoreEager != 0 || fl.credit.Fixed(), env.flags&noMoreEnvelopes != 0)
		p.filler = env.key.Context()
		p.sends.prepend(&p.stalled)
		p.stalls()
	}
	if p.link != fl.net.links[0] {
		fl.net.up.pump(p)
	}
}

// Sends that wait for credit stay in the queue, in order: more credit is on its way. When
// the receiver has no memory left, the sends of the communicator that has filled it are put
// aside, so that collectives and other communicators pass them.

// stall puts r aside if it must wait until the receiver receives messages.
func (p *Peer) stall(r *Request) bool {
	if !p.fillsIt(r) || p.stalled.first == nil && p.credit.Envelopes() {
		return false
	}
	r.stalled = true
	p.stalled.push(r)
	p.stalls()
	return true
}

// fillsIt reports whether r belongs to the communicator that has filled the receiver.
func (p *Peer) fillsIt(r *Request) bool {
	return p.credit.NoEnvelopes() && r.posted.Key.Plane() == wire.TrafficP2P && r.ctx.ID == p.filler
}

// mayAnnounce reports whether there is envelope credit for r, or r needs none.
func (p *Peer) mayAnnounce(r *Request) bool {
	return p.credit.MayAnnounce(p.fillsIt(r))
}
