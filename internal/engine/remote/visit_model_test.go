// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"fmt"
	"testing"
)

// A model of visits and the guard in which every access to a shared word is a
// step, so that all interleavings of a few parties can be tried, with deaths
// anywhere. A visitor changes a number at once; who has the guard reads it and
// writes it later.

type visitStep uint8

const (
	vBit  visitStep = iota // say that the place is used
	vMark                  // take a place
	vLook                  // at the guard
	vChange
	vEnd
	vBack // the guard is taken: clear the place
	vWait
	gTake
	gBits
	gSettle
	gRead
	gWrite
	gFree
	vDone
)

const visitParties = 3

type visitParty struct {
	at     visitStep
	place  int8 // the visitor's, or the one that the holder waits for
	bits   uint8
	read   uint8
	known  uint8 // deaths heard of
	dead   bool
	rounds int8
}

// visitState is all there is. Parties are numbered from 1 in words.
type visitState struct {
	guard, bits, number, changes uint8
	places                       [visitParties]uint8
	parties                      [visitParties]visitParty
	deaths                       int8
}

// visitModel is what does not change: the number of places, and who always
// takes the guard. without names what is left out.
type visitModel struct {
	n, places int
	many      [visitParties]bool
	without   string
}

func (m *visitModel) begin(p *visitParty, i int) {
	p.place, p.bits, p.read = int8(i%m.places), 0, 0
	switch {
	case p.rounds == 0:
		p.at = vDone
	case m.many[i]:
		p.at = gTake
	default:
		p.at = vBit
	}
}

// owned reports whether a word stands in the way of a party; a dead one's does
// not once that is known.
func (p *visitParty) owned(w uint8) bool { return w != 0 && p.known>>(w-1)&1 == 0 }

// steps appends what party i can do next.
func (m *visitModel) steps(s *visitState, i int, out []visitState) []visitState {
	t := *s
	p, me := &t.parties[i], uint8(i+1)
	switch p.at {
	case vBit:
		if m.without != "bit" {
			t.bits |= 1 << p.place
		}
		p.at = vMark
	case vMark:
		switch {
		case t.places[p.place] == 0:
			if t.places[p.place] = me; m.without == "mark" {
				t.places[p.place] = 0
			}
			p.at = vLook
		case int(p.place) == m.places-1:
			p.at = vWait // perhaps it tried others before, perhaps not
		default:
			p.place++
			p.at = vBit
		}
	case vLook:
		if p.at = vChange; t.guard != 0 && m.without != "look" {
			p.at = vBack
		}
	case vChange:
		t.number++
		t.changes++
		p.at = vEnd
	case vEnd:
		t.places[p.place] = 0
		p.rounds--
		m.begin(p, i)
	case vBack:
		t.places[p.place] = 0
		p.at = vWait
	case vWait: // for the guard to be free, or for long
		if t.guard == 0 {
			u := t
			m.begin(&u.parties[i], i)
			out = append(out, u)
		}
		p.at = gTake
	case gTake:
		if p.owned(t.guard) {
			return out
		}
		t.guard, p.at = me, gBits
	case gBits:
		p.bits, p.place = t.bits, 0
		if p.at = gSettle; m.without == "settle" {
			p.at = gRead
		}
	case gSettle:
		switch w := t.places[p.place]; {
		case p.bits>>p.place&1 != 0 && p.owned(w):
			return out
		case p.bits>>p.place&1 != 0 && w != 0 && m.without == "reap":
			return out
		case p.bits>>p.place&1 != 0 && w != 0:
			t.places[p.place] = 0
		case int(p.place) == m.places-1:
			p.at = gRead
		default:
			p.place++
		}
	case gRead:
		p.read, p.at = t.number, gWrite
	case gWrite:
		t.number = p.read + 1
		t.changes++
		p.at = gFree
	case gFree:
		if t.guard == me {
			t.guard = 0
		}
		p.rounds--
		m.begin(p, i)
	}
	return append(out, t)
}

func (m *visitModel) next(s *visitState, out []visitState) []visitState {
	for i := range m.n {
		p := &s.parties[i]
		if p.dead {
			for j := range m.n {
				if q := &s.parties[j]; !q.dead && q.at != vDone && q.known>>i&1 == 0 {
					t := *s
					t.parties[j].known |= 1 << i
					out = append(out, t)
				}
			}
			continue
		}
		if p.at == vDone {
			continue
		}
		out = m.steps(s, i, out)
		if s.deaths > 0 {
			t := *s
			t.deaths--
			t.parties[i] = visitParty{dead: true}
			out = append(out, t)
		}
	}
	return out
}

// explore tries everything; it returns what is wrong, and how many states there
// are.
func (m *visitModel) explore(rounds, deaths int8) (string, int) {
	start := visitState{deaths: deaths}
	for i := range m.n {
		start.parties[i].rounds = rounds
		m.begin(&start.parties[i], i)
	}
	seen := map[visitState]struct{}{start: {}}
	stack := []visitState{start}
	var next []visitState
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if s.number != s.changes {
			return fmt.Sprintf("%d after %d changes: %+v", s.number, s.changes, s), len(seen)
		}
		next = m.next(&s, next[:0])
		if len(next) == 0 {
			for i := range m.n {
				if p := &s.parties[i]; p.at != vDone && !p.dead {
					return fmt.Sprintf("%d waits for ever: %+v", i, s), len(seen)
				}
			}
		}
		for _, t := range next {
			if _, ok := seen[t]; !ok {
				seen[t] = struct{}{}
				stack = append(stack, t)
			}
		}
	}
	return "", len(seen)
}

func TestVisitsInAllInterleavings(t *testing.T) {
	for many := range 1 << visitParties {
		for _, n := range []int{2, 3} {
			for places := 1; places <= 2; places++ {
				rounds := int8(4 - n)
				m := visitModel{n: n, places: places}
				for i := range n {
					m.many[i] = many>>i&1 != 0
				}
				if n == 2 && many > 3 {
					continue
				}
				why, states := m.explore(rounds, 1)
				if t.Logf("%+v: %d states", m, states); why != "" {
					t.Errorf("%+v: %s", m, why)
				}
			}
		}
	}
}

// What is left out is missed: the model can fail.
func TestVisitModelSeesWhatIsMissing(t *testing.T) {
	for _, without := range []string{"bit", "mark", "look", "settle", "reap"} {
		m := visitModel{n: 2, places: 2, many: [visitParties]bool{true}, without: without}
		if why, states := m.explore(1, 1); why == "" {
			t.Errorf("nothing is wrong without %s in %d states", without, states)
		}
	}
}
