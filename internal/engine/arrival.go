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
	block uint8 // size class of data
}

// arrivalPool recycles arrivals and their memory in powers of two, so that a
// burst of unexpected messages costs no allocation the second time. What it
// keeps is bounded by what credit let arrive at one time.
type arrivalPool struct {
	free   *arrival
	blocks [maxBlock + 1][][]byte
}

const (
	minBlock = 6  // 64 bytes
	maxBlock = 24 // 16 MiB: above every eager limit
)

func blockClass(n int) uint8 {
	c := uint8(minBlock)
	for 1<<c < n {
		c++
	}
	return c
}

func (p *arrivalPool) get(n int) *arrival {
	a := p.free
	if a != nil {
		p.free = a.next
		a.next = nil
	} else {
		a = new(arrival)
	}
	if n > 0 {
		c := blockClass(n)
		if k := len(p.blocks[c]); k > 0 {
			a.data = p.blocks[c][k-1][:n]
			p.blocks[c] = p.blocks[c][:k-1]
		} else {
			a.data = make([]byte, n, 1<<c)
		}
		a.block = c
	}
	return a
}

func (p *arrivalPool) put(a *arrival) {
	if a.data != nil {
		p.blocks[a.block] = append(p.blocks[a.block], a.data[:0])
	}
	*a = arrival{next: p.free}
	p.free = a
}

// release gives back the credit and memory of an arrival.
func (e *Engine) release(a *arrival) {
	e.giveBack(a.peer, a.env.kind, a.units)
	e.arrivals.put(a)
}
