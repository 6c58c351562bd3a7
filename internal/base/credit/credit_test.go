// SPDX-License-Identifier: Apache-2.0

package credit

import (
	"math"
	"math/rand/v2"
	"testing"
)

// side is one of two processes that send to each other.
type side struct {
	Flow
	Account
	room  int64
	kept  []message // not received
	wires []message // on their way here
}

type message struct {
	k    Kind
	n    int32
	back *Return // credit, not a message
}

func (s *side) tell(to *side) {
	back := s.Settle()
	to.wires = append(to.wires, message{back: &back})
}

// Whatever two processes send, keep and receive, no credit is lost or made, none
// sends more than it was given, and a budget that is not needed is given back.
func TestBooks(t *testing.T) {
	for _, fixed := range []int64{0, 64 << 10} {
		rnd := rand.New(rand.NewPCG(uint64(fixed), 2))
		var ss [2]*side
		for i := range ss {
			s := &side{room: 4 << 20}
			f, err := New(fixed, 0, func() int64 { return s.room })
			if err != nil {
				t.Fatal(err)
			}
			s.Flow, ss[i] = f, s
			s.Start(&s.Account)
		}
		take := func(s, from *side) {
			m := s.wires[0]
			s.wires = s.wires[1:]
			switch {
			case m.back != nil:
				if !s.Take(&s.Account, uint32(m.back.Eager), uint32(m.back.Envelopes)) {
					t.Fatal("more credit than was used")
				}
				s.SetExhausted(m.back.NoEager || s.Fixed(), m.back.NoEnvelopes)
			default:
				what := s.Charge(&s.Account, m.k, m.n, false)
				if what.Over > 0 {
					t.Fatalf("%d bytes beyond the credit", what.Over)
				}
				s.kept = append(s.kept, m)
				if what.Tell {
					s.tell(from)
				}
			}
		}
		receive := func(s, from *side) {
			m := s.kept[0]
			s.kept = s.kept[1:]
			if s.GiveBack(&s.Account, m.k, s.Release(&s.Account, m.k, m.n, false)) {
				s.tell(from)
			}
		}
		full := 0
		for range 200_000 {
			i := rnd.IntN(2)
			s, o := ss[i], ss[1-i]
			switch rnd.IntN(5) {
			case 0, 1:
				if n := Units(rnd.IntN(4096)); s.Affords(n) {
					s.Spend(n)
					o.wires = append(o.wires, message{k: Eager, n: n})
				} else if s.MayAnnounce(true) {
					s.Announce()
					o.wires = append(o.wires, message{k: Announced, n: 1})
				}
			case 2, 3:
				if len(s.wires) > 0 {
					take(s, o)
				}
			case 4:
				if len(s.kept) > 0 {
					receive(s, o)
				}
			}
			if s.AnyFull() {
				full++
			}
		}
		for len(ss[0].wires)+len(ss[1].wires)+len(ss[0].kept)+len(ss[1].kept) > 0 {
			for i, s := range ss {
				if len(s.wires) > 0 {
					take(s, ss[1-i])
				} else if len(s.kept) > 0 {
					receive(s, ss[1-i])
				}
			}
		}
		for i, s := range ss {
			if o := ss[1-i]; !s.Balanced(&o.Account) {
				t.Errorf("fixed %d: %v, and the other %v", fixed, &s.Account, &o.Account)
			}
			s.Reclaim(&s.Account)
			if s.Used() != 0 {
				t.Errorf("fixed %d: %d units of the budget are used for nobody", fixed, s.Used())
			}
		}
		if (fixed == 0) != (full > 0) {
			t.Errorf("fixed %d: told %d times that there is no more", fixed, full)
		}
	}
}

// More than a peer was given is found out, by who receives it and by who gets
// credit back.
func TestBeyond(t *testing.T) {
	f, err := New(4*UnitBytes, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	var p Account
	f.Start(&p)
	if what := f.Charge(&p, Eager, 4, false); what.Over != 0 {
		t.Errorf("%+v", what)
	}
	if what := f.Charge(&p, Eager, 1, false); what.Over != UnitBytes {
		t.Errorf("%+v", what)
	}
	if f.Take(&p, 1, 0) || f.Take(&p, 0, MaxUnits) {
		t.Error("took more than there can be")
	}
	for _, c := range []int64{4*UnitBytes - 1, (MaxUnits + 1) * UnitBytes} {
		if _, err := New(c, 0, nil); err == nil {
			t.Errorf("a credit of %d bytes", c)
		}
	}
	if n := Units(math.MaxInt32 - UnitBytes); n <= 0 {
		t.Errorf("%d units", n)
	}
}
