// SPDX-License-Identifier: Apache-2.0

package changepage

import "testing"

// A model of Check, in which others may act between any two accesses to the page, so
// that all interleavings can be tried. Three ranks in a ring check, send to the next
// and wait for the message of the one before; the agent shows a change at any moment,
// and may withdraw it at any other. A rank that is handed the change sends once more,
// so that who waits for it goes on, and ends. The first Check is of iteration 1: a page
// that nobody has written to is not taken for one of members in iteration 0.

const (
	ranks = 3
	begin = 2 // the iteration + 1 of the first Check
	end   = 7 // of the last one
	shows = 2 // the change is shown before anybody begins the third, or has begun
)

type step uint8

const (
	rStore step = iota
	rLook
	rAgreed
	rRead // the line of each rank in turn
	rRead1
	rRead2
	rSwap
	rFixed
	rDue
	rAccept
	rVerdict
	rNone // handed nothing
	rReceive
	rHanded
	rOver
)

type rank struct {
	at      step
	next    int8 // the iteration + 1 of the next or present Check
	due     int8 // 0: none
	seen    bool // that it is fixed
	largest int8
	got     int8 // messages received
	handed  int8 // in which Check
}

type state struct {
	line    [ranks]int8
	phase   phase
	agreed  int8
	verdict State
	shown   bool
	agent   step // rAgreed to rOver
	largest int8 // that the agent has read
	rank    [ranks]rank
}

// unbegan stands in agreed for unbegun.
const unbegan = -1

// model is what does not change: without names what is left out, to see that it is
// missed.
type model struct {
	without  string
	withdraw bool
}

func (m *model) step(s state, i int, found func(state)) {
	r := &s.rank[i]
	switch r.at {
	case rStore:
		if m.without != "line first" {
			s.line[i] = r.next
		}
		r.at = rLook
	case rLook:
		switch {
		case s.phase == quiet:
			r.at = rNone
		case s.phase == agreeing:
			r.at = rAgreed
		case r.seen && r.next < r.due:
			r.at = rNone
		default:
			r.at = rDue
		}
	case rAgreed:
		r.at, r.largest = rRead, 0
		if s.agreed > 0 && m.without != "swap" {
			r.at = rFixed
		}
	case rRead, rRead1, rRead2:
		r.largest = max(r.largest, s.line[r.at-rRead])
		r.at++
	case rSwap:
		if s.agreed <= 0 || m.without == "swap" {
			s.agreed = r.largest + 1
			if m.without == "ahead" {
				s.agreed = max(1, r.largest)
			}
		}
		r.at, r.largest = rFixed, 0
	case rFixed:
		if s.phase == agreeing {
			s.phase = agreed
		}
		r.at = rLook
	case rDue:
		if !r.seen && s.agreed == unbegan {
			r.at = rAgreed
			break
		}
		if !r.seen {
			r.seen, r.due = true, s.agreed
		}
		if r.at = rAccept; r.next < r.due {
			r.at = rNone
		}
	case rAccept:
		if s.verdict == Open {
			s.verdict = Accepted
		}
		r.at = rVerdict
	case rVerdict:
		if s.verdict == Accepted || m.without == "verdict" {
			r.at, r.handed, r.next = rHanded, r.next, r.next+1
		} else {
			r.at, r.due = rNone, 100
		}
	case rNone:
		s.line[i] = r.next
		r.next++
		if r.at = rReceive; r.next > end {
			r.at = rOver
		}
	case rReceive:
		// The messages of the rank before are as many as its Checks.
		if s.rank[(i+ranks-1)%ranks].next-begin <= r.got {
			return
		}
		r.got++
		r.at = rStore
	default:
		return
	}
	found(s)
}

func (m *model) agent(s state, found func(state)) {
	if !s.shown {
		for i := range s.rank {
			if s.rank[i].next >= begin+shows {
				return
			}
		}
		s.shown, s.phase, s.agent = true, agreeing, rAgreed
		found(s)
		return
	}
	if m.finds(&s) {
		found(s)
		return
	}
	if m.withdraw && s.verdict == Open {
		s.verdict = RolledBack
		found(s)
	}
	if s.verdict == RolledBack && s.phase != quiet {
		s.phase = quiet
		found(s)
	}
}

// finds is the agent's Agree, one step of it; false: it is done.
func (m *model) finds(s *state) bool {
	switch s.agent {
	case rAgreed:
		if s.agent = rRead; s.agreed != 0 {
			s.agent = rFixed
		}
	case rRead, rRead1, rRead2:
		s.largest = max(s.largest, s.line[s.agent-rRead])
		s.agent++
	case rSwap:
		switch {
		case s.agreed != 0:
		case s.largest == 0 && m.without != "begun":
			s.agreed = unbegan
		default:
			s.agreed = s.largest + 1
		}
		s.agent = rFixed
	case rFixed:
		if s.phase == agreeing {
			s.phase = agreed
		}
		s.agent = rOver
	default:
		return false
	}
	return true
}

// run tries all interleavings and returns what went wrong.
func (m *model) run() (wrong string, states int) {
	start := state{agent: rOver}
	for i := range start.rank {
		start.rank[i].next = begin
	}
	seen := map[state]struct{}{start: {}}
	todo := []state{start}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		moves := 0
		found := func(n state) {
			moves++
			if _, ok := seen[n]; !ok {
				seen[n] = struct{}{}
				todo = append(todo, n)
			}
		}
		at, waits, without := int8(0), false, false
		for i := range s.rank {
			m.step(s, i, found)
			r := &s.rank[i]
			if r.handed != 0 && at != 0 && at != r.handed {
				return "two iterations", len(seen)
			}
			if r.handed != 0 && r.handed != s.agreed {
				return "not the iteration that was agreed", len(seen)
			}
			at = max(at, r.handed)
			waits = waits || r.at != rOver && r.at != rHanded
			without = without || r.at == rOver
		}
		m.agent(s, found)
		if moves > 0 {
			continue
		}
		switch {
		case waits:
			return "somebody waits for ever", len(seen)
		case at != 0 && without:
			return "one is handed it and another not", len(seen)
		case s.shown && at == 0 && s.verdict != RolledBack:
			return "nobody is handed it", len(seen)
		}
	}
	return "", len(seen)
}

// All members are handed a change at the same iteration or none is, nobody waits for
// ever, and each rule is needed.
func TestModel(t *testing.T) {
	for _, withdraw := range []bool{false, true} {
		m := model{withdraw: withdraw}
		wrong, states := m.run()
		if wrong != "" {
			t.Errorf("%+v: %s", m, wrong)
		}
		t.Logf("%+v: %d states", m, states)
	}
	for _, rule := range []string{"line first", "swap", "ahead", "verdict", "begun"} {
		m := model{without: rule, withdraw: true}
		if wrong, _ := m.run(); wrong == "" {
			t.Errorf("without %q all is well", rule)
		} else {
			t.Logf("without %q: %s", rule, wrong)
		}
	}
}
