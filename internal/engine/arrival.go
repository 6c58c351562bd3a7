// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/match"
)

// arrival is an unexpected message.
type arrival struct {
	node  match.Arrived[arrival]
	env   envelope
	peer  *Peer
	data  []byte // payload: the message, or what an RTS carries
	bytes int64  // length of the message
	units int32
	next  *arrival
}

// arrivalPool recycles arrivals and their memory. What it keeps is bounded by
// what credit let arrive at one time.
type arrivalPool struct {
	free   *arrival
	blocks blockPool
}

func (p *arrivalPool) get(n int) *arrival {
	a := p.free
	if a != nil {
		p.free = a.next
		a.next = nil
	} else {
		a = new(arrival)
	}
	a.data = p.blocks.get(n)
	return a
}

func (p *arrivalPool) put(a *arrival) {
	p.blocks.put(a.data)
	*a = arrival{next: p.free}
	p.free = a
}

// release gives back the credit and memory of an arrival.
func (e *Engine) release(a *arrival) {
	e.giveBack(a.peer, a.env.kind, a.units)
	e.arrivals.put(a)
}
