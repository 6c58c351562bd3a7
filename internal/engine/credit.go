// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"gompi/internal/match"
	"gompi/internal/wire"
	"gompi/transport"
)

// Flow control: docs/design/016-credit.md. Every message costs its sender units
// until the receiver has handed it on or thrown it away: an eager one its
// payload and one for itself, of eager credit; an announcement one of envelope
// credit. The receiver has given out a window of each to every peer, and makes
// it larger out of its budget before what it keeps fills it.

const (
	unitBytes = 64 // knob.CreditUnit
	// An announcement takes announcedUnits of memory.
	announcedUnits = 4
	// maxUnits bounds a window: units travel and are counted in 31 bits.
	maxUnits = 1 << 30
	// envelopeCredit is how many announcements a peer may have unmatched here
	// to begin with.
	envelopeCredit = 1 << 16
	// overdraft is how many announcements pass on top of that when the
	// receiver has no memory left: steps of collectives, and messages of
	// communicators other than the one that has filled it.
	overdraft = 1 << 16
	// askAgain is how often the budget is refused before the system is asked
	// for memory again.
	askAgain = 1024
)

func units(payload int) int32 { return int32(1 + (payload+unitBytes-1)/unitBytes) }

// What a frame of kindCredit says beside the numbers.
const (
	creditState     = 1 << iota // the following hold from now on
	noMoreEager                 // what eager credit does not cover goes as an announcement
	noMoreEnvelopes             // no announcement either, of the context in the key
)

// account is what a peer may have here at one time of one kind: units of eager
// messages, or announcements.
type account struct {
	base   int64 // what it starts with
	window int64 // given to it altogether: it has them, or they are on their way, held or owed
	held   int64 // of messages that nobody has received
	cost   int64 // of one, in units of the budget
	full   bool  // it was told that there is no more
}

// flow is the flow control of a process.
type flow struct {
	base       int64 // eager credit that each peer starts with, in units
	mostCredit int64 // that there can be
	oweMost    int32 // that goes back by itself
	budget     budget
	tight      []*Peer // that were told that there is no more
}

// budget is the memory for windows beyond those that every peer starts with,
// in units.
type budget struct {
	limit   int64
	used    int64
	asked   int64 // used when the limit was last looked for
	refused int
}

// room reports whether a peer that has had grown of the budget may have step
// more: no more than what is left then. part is the eighths of the budget that
// may be used for what it wants.
func (e *Engine) room(grown, step, part int64) bool {
	b := &e.budget
	fits := func() bool { return grown+step <= b.limit*part/8-b.used-step }
	if e.cfg.Room != nil && (b.limit == 0 || 2*b.used >= b.limit && 16*(b.used-b.asked) >= b.limit) {
		e.askRoom()
	}
	if fits() {
		return true
	}
	if b.refused++; b.refused%askAgain == 1 && e.cfg.Room != nil {
		e.askRoom()
		return fits()
	}
	return false
}

func (e *Engine) askRoom() {
	b := &e.budget
	b.limit, b.asked = b.used+e.cfg.Room()/unitBytes, b.used
}

// startCredit gives a new peer what all start with.
func (e *Engine) startCredit(p *Peer) {
	p.credit, p.envelopes = int32(e.base), envelopeCredit
	p.eager = account{base: e.base, window: e.base, cost: 1}
	p.announced = account{base: envelopeCredit, window: envelopeCredit, cost: announcedUnits}
	p.noEager = e.cfg.Credit != 0
}

func (p *Peer) account(k kind) *account {
	if k == kindRTS {
		return &p.announced
	}
	return &p.eager
}

// grown is what the window has had of the budget.
func (a *account) grown() int64 { return (a.window - a.base) * a.cost }

// spare is what is given out beyond what the peer needs: as much as it started
// with, or nothing if it is gone.
func (a *account) spare(gone bool) int64 {
	if gone {
		return a.window - max(a.held, a.base)
	}
	return a.window - a.held - a.base
}

// charge counts an unexpected message of n units, for which the peer must have
// had credit.
func (e *Engine) charge(p *Peer, k kind, n int32) bool {
	a := p.account(k)
	most := a.window
	if k == kindRTS {
		most += overdraft
	}
	if a.held += int64(n); a.held > most {
		e.protocol(p, fmt.Errorf("%w: %d bytes beyond the credit", transport.ErrProtocol, (a.held-most)*unitBytes))
		return false
	}
	if a.held > a.window-a.base/2 {
		e.extend(p, a)
	}
	if k == kindRTS && p.eager.full {
		e.extend(p, &p.eager)
	}
	return true
}

// extend makes a window larger, or tells the peer that it will not be.
func (e *Engine) extend(p *Peer, a *account) {
	eager, part, step := a == &p.eager, int64(8), a.base/2
	if eager {
		if e.cfg.Credit != 0 {
			return // it is fixed, which the peer knows
		}
		part = 7 // the rest is for announcements
	}
	switch {
	case p.state != peerDown && a.window+step <= maxUnits && e.room(p.eager.grown()+p.announced.grown(), step*a.cost, part):
		a.window += step
		a.full = false
		e.budget.used += step * a.cost
		if eager {
			p.owed += int32(step)
		} else {
			p.owedEnvelopes += int32(step)
		}
	case a.full:
		return
	default:
		a.full = true
		if !eager {
			p.filledBy = e.fills(p)
		}
		if !p.tight {
			p.tight = true
			e.tight = append(e.tight, p)
		}
	}
	e.returnCredit(p)
}

// release gives back the credit and memory of an arrival.
func (e *Engine) release(u *arrival) {
	p, k, n := u.peer, u.kind, u.units
	e.arrivals.put(u)
	a := p.account(k)
	a.held -= int64(n)
	if spare := min(a.spare(p.state == peerDown), int64(n)); spare > 0 {
		// The window shrinks to what it was: the peer does not get this back.
		a.window -= spare
		e.budget.used -= spare * a.cost
		n -= int32(spare)
	}
	e.giveBack(p, k, n)
}

// giveBack returns credit for a message that the peer sent.
func (e *Engine) giveBack(p *Peer, k kind, n int32) {
	switch self := p.link == e.links[0]; {
	case self && k == kindRTS:
		p.owedEnvelopes += n
		e.returnCredit(p)
	case self:
		p.owed += n
		e.returnCredit(p)
	case k == kindRTS:
		if p.owedEnvelopes += n; p.owedEnvelopes >= envelopeCredit/4 {
			e.returnCredit(p)
		}
	default:
		e.owe(p, n)
	}
}

// owe notes credit for eager messages, which goes back with the next message
// or, when much is owed, by itself.
func (e *Engine) owe(p *Peer, n int32) {
	p.owed += n
	if p.owed >= e.oweMost {
		e.returnCredit(p)
	}
}

// returnCredit sends what is owed, and how things stand.
func (e *Engine) returnCredit(p *Peer) {
	n, m := p.owed, p.owedEnvelopes
	p.owed, p.owedEnvelopes = 0, 0
	flags, key := uint8(creditState), wire.ContextID{}
	if p.eager.isFull() {
		flags |= noMoreEager
	}
	if p.announced.isFull() {
		flags |= noMoreEnvelopes
		key = p.filledBy
	}
	if p.link == e.links[0] {
		e.credited(p, &envelope{key: match.NewKey(key, wire.PlaneP2P, 0, m), flags: flags, aux: uint32(n)})
		if p.hasQueued() {
			e.prog.Wake() // to send what has waited for it
		}
		return
	}
	e.control(p, match.NewKey(key, wire.PlaneP2P, 0, m), kindCredit, flags, uint32(n))
}

// isFull reports whether the peer is to be told that there is no more. Else it
// has enough again to fill the window, at which it will be told.
func (a *account) isFull() bool {
	a.full = a.full && a.held > a.window-a.base/2
	return a.full
}

// settleUp returns what is owed to peers that have been told that there is no
// more: nothing may come of them until they have it, and this process is about
// to sleep.
func (e *Engine) settleUp() {
	kept := e.tight[:0]
	for _, p := range e.tight {
		if p.state == peerDown || !p.eager.full && !p.announced.full {
			p.tight = false
			continue
		}
		kept = append(kept, p)
		if p.owed > 0 || p.owedEnvelopes > 0 {
			e.returnCredit(p)
		}
	}
	clear(e.tight[len(kept):])
	e.tight = kept
}

// fills is the context with most announcements of a peer that nobody has
// received.
func (e *Engine) fills(p *Peer) (most wire.ContextID) {
	count := map[wire.ContextID]int{}
	for a := range e.table.Walk {
		if u := a.Val; u.peer == p && u.kind == kindRTS && a.Key.Plane() == wire.PlaneP2P {
			id := a.Key.Context()
			if count[id]++; count[id] > count[most] {
				most = id
			}
		}
	}
	return most
}

// lostCredit takes back what a peer that is gone has no more use for.
func (f *flow) lostCredit(p *Peer) {
	for _, a := range [...]*account{&p.eager, &p.announced} {
		if spare := a.spare(true); spare > 0 {
			a.window -= spare
			f.budget.used -= spare * a.cost
		}
	}
}

// takeCredit books credit that came back.
func (f *flow) takeCredit(p *Peer, n, envelopes uint32) bool {
	if int64(p.credit)+int64(n) > f.mostCredit || int64(p.envelopes)+int64(envelopes) > maxUnits {
		return false
	}
	p.credit += int32(n)
	p.envelopes += int32(envelopes)
	return true
}

func (e *Engine) overCredit(p *Peer) {
	e.protocol(p, fmt.Errorf("%w: more credit than was used", transport.ErrProtocol))
}

// credited handles a frame of kindCredit.
func (e *Engine) credited(p *Peer, env *envelope) {
	if !e.takeCredit(p, env.aux, uint32(env.key.Tag())) {
		e.overCredit(p)
		return
	}
	if env.flags&creditState != 0 {
		p.noEager = env.flags&noMoreEager != 0 || e.cfg.Credit != 0
		p.noEnvelopes = env.flags&noMoreEnvelopes != 0
		p.filler = env.key.Context()
		p.sends.prepend(&p.stalled)
		p.stalls()
	}
	if p.link != e.links[0] {
		e.pump(p)
	}
}

// Sends that wait for credit stay in the queue, in order: more is on its way.
// When the receiver has no memory left those of the communicator that has
// filled it are put aside, so that collectives and other communicators pass.

// stall puts r aside if it must wait for the receiver to receive.
func (p *Peer) stall(r *Request) bool {
	if !p.fillsIt(r) || p.stalled.first == nil && p.envelopes > 0 {
		return false
	}
	r.aside = true
	p.stalled.push(r)
	p.stalls()
	return true
}

// stalls notes whether messages may not go straight to the transport.
func (p *Peer) stalls() { p.slow = p.full || p.stalled.first != nil }

// fillsIt reports whether r is of the kind that has filled the receiver.
func (p *Peer) fillsIt(r *Request) bool {
	return p.noEnvelopes && r.posted.Key.Plane() == wire.PlaneP2P && r.ctx.ID == p.filler
}

// mayAnnounce reports whether there is envelope credit for r, or it passes
// without.
func (p *Peer) mayAnnounce(r *Request) bool {
	return p.envelopes > 0 || p.noEnvelopes && p.envelopes > -overdraft && !p.fillsIt(r)
}
