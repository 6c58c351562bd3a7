// SPDX-License-Identifier: Apache-2.0

package changepage

import (
	"encoding/binary"
	"sync/atomic"
)

// bodyWords is how much room a page of so many members has for what they are handed.
func bodyWords(members int) int { return 128 + 8*members }

// putBody writes down what members are handed with a change, before anybody sees that.
// Who saw it earlier would ask for what is then handed to it here, and give that back
// when it looks no more.
func (p Page) putBody(c Change, body []byte) bool {
	p.head.body.Store(0)
	if body == nil || len(body) > 8*len(p.body) {
		return false
	}
	for i := 0; i*8 < len(body); i++ {
		var b [8]byte
		copy(b[:], body[i*8:])
		p.body[i].Store(binary.LittleEndian.Uint64(b[:]))
	}
	p.head.body.Store(uint64(c)<<32 | uint64(len(body)))
	return true
}

// Body is a copy of what members are handed with a change; false: it does not stand
// here. What it says is to be checked.
func (p Page) Body(c Change) ([]byte, bool) {
	at := p.head.body.Load()
	n := int(uint32(at))
	if c == 0 || at>>32 != uint64(c) || n > 8*len(p.body) {
		return nil, false
	}
	words := (n + 7) / 8
	body := make([]byte, 8*words)
	for i := range words {
		binary.LittleEndian.PutUint64(body[8*i:], p.body[i].Load())
	}
	return body[:n], p.head.body.Load() == at
}

// A claim is {change 63, 1 if the agent has closed it}.
func claim(c Change) uint64 { return uint64(c) << 1 }

const closed = 1

// Take claims what a member is handed with a change, which it then has to give back
// itself; again: it has done so before. Not ok: the agent has taken it back.
func (m *Member) Take(c Change) (ok, again bool) {
	if was, won := advance(&m.line.claim, c, 0); !won {
		return was == claim(c), was == claim(c)
	}
	return true, false
}

// Took reports whether a member has claimed it, or it was taken back.
func (p Page) Took(c Change, place int) bool { return p.members[place].claim.Load() >= claim(c) }

// Close takes back what a member would be handed with a change: for the agent, when
// nobody may be handed it any more. False: the member has it.
func (p Page) Close(c Change, place int) bool {
	was, won := advance(&p.members[place].claim, c, closed)
	return won || was != claim(c)
}

// advance sets a claim of an older change to one of c; else it returns what stands
// there.
func advance(at *atomic.Uint64, c Change, low uint64) (was uint64, won bool) {
	for {
		was = at.Load()
		if was >= claim(c) {
			return was, false
		}
		if at.CompareAndSwap(was, claim(c)|low) {
			return was, true
		}
	}
}

// Leave tells that the member does not touch the page any more, as it goes on with
// another one. Nothing of the page follows.
func (m *Member) Leave() { m.line.left.Store(1) }

// Left reports whether a member has said so.
func (p Page) Left(place int) bool { return p.members[place].left.Load() != 0 }

// Missed reports whether a change holds that the member is still to be handed: the
// next one must not begin.
func (p Page) Missed(c Change, place int) bool {
	s, ok := p.Decision(c)
	return ok && s == Committed && p.members[place].delivered.Load() < uint64(c)
}

// Got notes that the member was handed a change. waits: the agent waits for that, and
// is to be told.
func (m *Member) SetDelivered(c Change) (waits bool) {
	m.last = c
	m.line.delivered.Store(uint64(c))
	return m.page.head.awaited.Load() == uint64(c)
}
