// SPDX-License-Identifier: Apache-2.0

package changepage

import (
	"encoding/binary"
	"sync/atomic"
)

// bodyWords returns the number of words for the body on a page of so many members.
func bodyWords(members int) int { return 128 + 8*members }

// putBody stores the body of a change before any member sees the change. A member that saw the
// change earlier would ask for the body, and would not find out that it is also here.
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

// Body returns a copy of the body of a change. It returns false if the body is not here. The
// caller must check the contents.
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

// claim returns the word of a claim: {change 63, closed 1}.
func claim(c Change) uint64 { return uint64(c) << 1 }

// closed marks a claim that the agent has closed.
const closed = 1

// Take claims the body of a change for the member, which must then give it back itself. again
// says that the member has claimed it before. ok is false if the agent has closed it.
func (m *Member) Take(c Change) (ok, again bool) {
	if was, won := advance(&m.line.claim, c, 0); !won {
		return was == claim(c), was == claim(c)
	}
	return true, false
}

// Took reports whether the member has claimed the body, or the agent has closed it.
func (p Page) Took(c Change, place int) bool { return p.members[place].claim.Load() >= claim(c) }

// Close takes the body back from a member. The agent calls it when the change is no longer
// delivered to any member. It returns false if the member has claimed the body.
func (p Page) Close(c Change, place int) bool {
	was, won := advance(&p.members[place].claim, c, closed)
	return won || was != claim(c)
}

// advance sets the claim of an older change to one of c. If there is a claim of c already, it
// returns that.
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

// Leave records that the member goes on with another page and does not touch this one any more.
func (m *Member) Leave() { m.line.left.Store(1) }

// Left reports whether a member has called Leave.
func (p Page) Left(place int) bool { return p.members[place].left.Load() != 0 }

// Missed reports whether a committed change is still to be delivered to a member. The next
// change must not begin before that.
func (p Page) Missed(c Change, place int) bool {
	s, ok := p.Decision(c)
	return ok && s == Committed && p.members[place].delivered.Load() < uint64(c)
}

// SetDelivered records that a change was delivered to the member. waits says that the agent
// waits for that and must be told.
func (m *Member) SetDelivered(c Change) (waits bool) {
	m.last = c
	m.line.delivered.Store(uint64(c))
	return m.page.head.awaited.Load() == uint64(c)
}
