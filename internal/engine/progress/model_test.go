// SPDX-License-Identifier: Apache-2.0

package progress

import "testing"

// A model of who polls, waits and sleeps in which others may act between any two
// accesses to what they share, so that all interleavings can be tried: Await, lead,
// park, handOver and the service goroutine, without ticks. Each of two goroutines
// waits for what one of two others sends. Whoever has the lock alone takes steps
// that need it; a sender needs none. The first goroutine needs two events.

const waiters = 2

type step uint8

const (
	wLock step = iota
	wTop       // is it over, and does anybody lead?
	wPoll
	wYield // it has given the lock away
	wTell  // it announces sleep
	wLook  // and looks once more
	wPark
	wParked
	wLeave
	wLeaveLook

	vBack // on its way to where it is asked
	vIdle
	vLock
	vTell
	vLook
	vSleep
	vWoken
	vServe
	vYield

	sSend
	sLook // is this process asleep?

	over
)

const nobody, serviceHas = -1, waiters

// state is all there is. Comparable.
type state struct {
	word    [waiters]int8 // sent and not taken
	told    bool          // the process says that it sleeps
	rung    bool
	asked   bool
	leading bool
	armed   bool
	lock    int8
	waiter  [waiters]struct {
		at            step
		hits          int8
		parked, token bool
	}
	first, last int8 // of those parked; nobody
	service     step
	sender      [waiters]step
	sent        [waiters]int8
}

var needs = [waiters]int8{2, 1}

// model is what does not change: without names what is left out, to see that it is
// missed.
type model struct{ without string }

func (s *state) unpark(i int8) {
	if w := &s.waiter[i]; w.parked {
		w.parked, w.token = false, true
		switch {
		case s.first == s.last:
			s.first, s.last = nobody, nobody
		case s.first == i:
			s.first = s.last
		default:
			s.last = s.first
		}
	}
}

// poll takes what was sent.
func (s *state) poll() (some bool) {
	for i, n := range s.word {
		if n > 0 {
			s.word[i], some = 0, true
			if s.waiter[i].hits += n; s.waiter[i].hits == needs[i] {
				s.unpark(int8(i))
			}
		}
	}
	return some
}

func (s *state) any() bool { return s.word != [waiters]int8{} }

// wait does the next step of a goroutine that waits.
func (m *model) wait(s state, me int8, found func(state)) {
	w := &s.waiter[me]
	switch w.at {
	case wLock, wYield:
		if s.lock != nobody {
			return
		}
		s.lock = me
		if w.at == wLock {
			w.at = wTop
		} else {
			w.at = wPoll
		}
	case wTop:
		switch {
		case w.hits == needs[me]:
			w.at = wLeave
		case s.leading:
			w.at = wPark
		default:
			s.leading, w.at = true, wPoll
		}
	case wPoll:
		if s.poll(); w.hits == needs[me] {
			s.leading, w.at = false, wTop
			break
		}
		t := s
		t.waiter[me].at, t.lock = wYield, nobody
		found(t)
		w.at = wTell
	case wTell:
		s.told, w.at = true, wLook
	case wLook:
		if s.any() {
			if w.at = wPoll; !s.armed {
				s.told = false
			}
			break
		}
		s.leading, w.at = false, wPark
		s.asked = s.asked || m.without != "token" || s.service == vIdle
	case wPark:
		if w.parked, w.at, s.lock = true, wParked, nobody; s.first == nobody {
			s.first = me
		}
		s.last = me
	case wParked:
		if !w.token {
			return
		}
		w.token, w.at = false, wLock
	case wLeave:
		switch {
		case s.leading || m.without == "hand over":
		case s.armed:
			s.told, w.at = true, wLeaveLook
			found(s)
			return
		case s.first != nobody:
			s.unpark(s.first)
		}
		w.at, s.lock = over, nobody
	case wLeaveLook:
		s.rung = s.rung || s.any()
		w.at, s.lock = over, nobody
	default:
		return
	}
	found(s)
}

// serve does the next step of the service goroutine.
func (m *model) serve(s state, found func(state)) {
	switch s.service {
	case vBack:
		s.service = vIdle
	case vIdle:
		if !s.asked {
			return
		}
		s.asked, s.service = false, vLock
	case vLock, vYield, vWoken:
		if s.lock != nobody {
			return
		}
		woken := s.service == vWoken
		if woken {
			s.armed, s.told = false, false
		}
		switch {
		case s.leading:
			s.service = vBack
			found(s)
			return
		case woken:
			s.service = vServe
		default:
			s.service = vTell
		}
		s.lock = serviceHas
	case vTell:
		s.told, s.service = true, vLook
	case vLook:
		if s.any() && m.without != "look" {
			s.told, s.service = false, vServe
			break
		}
		s.armed, s.lock, s.service = true, nobody, vSleep
	case vSleep:
		if !s.rung {
			return
		}
		s.rung, s.service = false, vWoken
	case vServe:
		if s.poll() && s.first != nobody {
			if m.without != "wake a follower" {
				s.unpark(s.first)
			}
			s.service = vBack
		} else {
			s.service = vYield
		}
		s.lock = nobody
	}
	found(s)
}

// send does the next step of a sender.
func (m *model) send(s state, i int, found func(state)) {
	switch s.sender[i] {
	case sSend:
		s.word[i]++
		s.sent[i]++
		s.sender[i] = sLook
	case sLook:
		if s.sender[i] = sSend; s.sent[i] == needs[i] {
			s.sender[i] = over
		}
		if s.told && m.without != "bell" {
			s.told, s.rung = false, true
		}
	default:
		return
	}
	found(s)
}

// run tries all interleavings, and returns a state from which nobody goes on though
// somebody waits.
func (m *model) run(t *testing.T) (stuck *state, states int) {
	start := state{lock: nobody, first: nobody, last: nobody, service: vIdle, sender: [waiters]step{sSend, sSend}}
	seen := map[state]struct{}{start: {}}
	todo := []state{start}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		moves, waiting := 0, false
		found := func(n state) {
			moves++
			if _, ok := seen[n]; !ok {
				seen[n] = struct{}{}
				todo = append(todo, n)
			}
		}
		for i := range s.waiter {
			m.wait(s, int8(i), found)
			m.send(s, i, found)
			waiting = waiting || s.waiter[i].at != over
		}
		m.serve(s, found)
		if moves == 0 && waiting {
			return &s, len(seen)
		}
		if moves == 0 && (s.lock != nobody || s.leading || s.first != nobody || s.any()) {
			t.Fatalf("left behind in the end: %+v", s)
		}
	}
	return nil, len(seen)
}

// Nobody waits for ever, and each rule is needed.
func TestModel(t *testing.T) {
	var m model
	stuck, states := m.run(t)
	if stuck != nil {
		t.Errorf("somebody waits for ever: %+v", *stuck)
	}
	t.Logf("%d states", states)
	for _, rule := range []string{"hand over", "token", "look", "wake a follower", "bell"} {
		m := model{rule}
		if stuck, _ := m.run(t); stuck == nil {
			t.Errorf("without %q all is well", rule)
		}
	}
}
