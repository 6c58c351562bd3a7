// SPDX-License-Identifier: Apache-2.0

package shmcoll

import "testing"

// A model of sleep over an area in which every access to a shared word is a step,
// so that all interleavings can be tried: Area.PrepareSleep, takeMark, EndSleep and
// WakeAll, and the second look of who sleeps. Two ranks wait, each for what one of
// two others publishes. A processor may keep a plain store to itself for some steps.

const sleepers, publishers = 2, 2

type sleepStep uint8

const (
	sLook  sleepStep = iota // has the other one published?
	sDoze                   // is the mark there?
	sCount                  // one more sleeps
	sMark
	sAsleep
	sWake // it takes its own mark away
	sWakeDown

	sPublish
	sSleepers // does anybody sleep?
	sWalk     // does rank i?
	sRise
	sCountDown
	sNudge

	sOver
)

type sleepRank struct {
	at     sleepStep
	i      int8
	dozed  bool  // since it looked last
	timer  bool  // a second look will come
	spent  bool  // and has come
	before uint8 // stores that were on their way when the timer was set
}

// sleepState is all there is. Comparable.
type sleepState struct {
	words    [publishers]bool // what all see
	stores   [publishers]bool // what a processor keeps to itself
	asleep   [sleepers]bool
	rung     [sleepers]bool
	sleepers int8
	ranks    [sleepers + publishers]sleepRank
}

// sleepModel is what does not change. without names what is left out, to see that
// it is missed.
type sleepModel struct {
	plain   bool // cells are plain stores
	without string
}

// flush lets all see what a publisher has stored.
func (s *sleepState) flush(k int) {
	if s.stores[k] {
		s.words[k], s.stores[k] = true, false
		for i := range s.ranks {
			s.ranks[i].before &^= 1 << k
		}
	}
}

// sleep does the next step of a sleeper.
func (m *sleepModel) sleep(s sleepState, me int, found func(sleepState)) {
	p := &s.ranks[me]
	switch p.at {
	case sLook:
		switch {
		case s.words[me]:
			p.at = sWake
		case p.dozed:
			p.at = sAsleep
		default:
			p.at = sDoze
		}
	case sDoze:
		if p.at = sCount; s.asleep[me] {
			p.dozed, p.at = true, sLook
		} else if m.without == "count first" {
			p.at = sMark
		}
	case sCount:
		s.sleepers++
		if p.at = sMark; m.without == "count first" {
			p.dozed, p.at = true, sLook
		}
	case sMark:
		s.asleep[me] = true
		if p.timer = m.without != "second look" && !p.spent; p.timer {
			p.before = 0
			for k, stored := range s.stores {
				if stored {
					p.before |= 1 << k
				}
			}
		}
		if p.dozed, p.at = true, sLook; m.without == "count first" {
			p.dozed, p.at = false, sCount
		}
	case sAsleep:
		if s.rung[me] {
			t := s
			q := &t.ranks[me]
			t.rung[me], q.timer, q.before, q.at = false, false, 0, sWake
			found(t)
		}
		if p.timer && p.before == 0 { // and whoever rings at this moment is not heard again
			p.timer, p.spent = false, m.without == "second look again"
			s.rung[me], p.dozed, p.at = false, false, sLook
			found(s)
		}
		return
	case sWake:
		if p.timer, p.spent, p.before = false, false, 0; s.asleep[me] {
			s.asleep[me], p.at = false, sWakeDown
		} else {
			p.awake(&s, me)
		}
	case sWakeDown:
		s.sleepers--
		p.awake(&s, me)
	case sOver:
		return
	}
	found(s)
}

// awake goes on after wake.
func (p *sleepRank) awake(s *sleepState, me int) {
	p.dozed = false
	if p.at = sLook; s.words[me] {
		p.at = sOver
	}
}

// publish does the next step of a publisher.
func (m *sleepModel) publish(s sleepState, k int, found func(sleepState)) {
	p := &s.ranks[sleepers+k]
	walk := func() {
		if p.at, p.i = sWalk, p.i+1; p.i == sleepers {
			p.at, p.i = sOver, 0
		}
	}
	switch p.at {
	case sPublish:
		s.stores[k] = true
		if !m.plain {
			s.flush(k)
		}
		p.at = sSleepers
	case sSleepers:
		if p.at = sOver; s.sleepers != 0 {
			p.at = sWalk
		}
	case sWalk:
		if s.asleep[p.i] {
			p.at = sRise
		} else {
			walk()
		}
	case sRise:
		if s.flush(k); s.asleep[p.i] {
			s.asleep[p.i], p.at = false, sCountDown
		} else {
			walk()
		}
	case sCountDown:
		s.flush(k)
		s.sleepers--
		p.at = sNudge
	case sNudge:
		s.rung[p.i] = true
		walk()
	case sOver:
		return
	}
	found(s)
}

// run tries all interleavings, and returns a state from which nobody goes on
// though somebody waits.
func (m *sleepModel) run(t *testing.T) (stuck *sleepState, states int) {
	var first sleepState
	for k := range publishers {
		first.ranks[sleepers+k].at = sPublish
	}
	seen := map[sleepState]struct{}{first: {}}
	todo := []sleepState{first}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		moves := 0
		found := func(n sleepState) {
			if moves++; n.sleepers < 0 && m.without == "" {
				t.Fatalf("fewer than none sleep: %+v", n)
			}
			if _, ok := seen[n]; !ok {
				seen[n] = struct{}{}
				todo = append(todo, n)
			}
		}
		waiting := false
		for i := range sleepers {
			m.sleep(s, i, found)
			waiting = waiting || s.ranks[i].at != sOver
		}
		for k := range publishers {
			if m.publish(s, k, found); s.stores[k] {
				n := s
				n.flush(k)
				found(n)
			}
		}
		switch {
		case moves > 0:
		case waiting:
			return &s, len(seen)
		case s.sleepers != 0 || s.asleep != [sleepers]bool{}:
			t.Fatalf("some are counted in the end: %+v", s)
		}
	}
	return nil, len(seen)
}

// No rank sleeps over an area for ever, and each rule of its sleep is needed.
func TestSleepModel(t *testing.T) {
	for _, plain := range []bool{false, true} {
		m := sleepModel{plain: plain}
		stuck, states := m.run(t)
		if stuck != nil {
			t.Errorf("plain stores %v: somebody sleeps for ever: %+v", plain, *stuck)
		}
		t.Logf("plain stores %v: %d states", plain, states)
	}
	for _, m := range []sleepModel{
		{false, "count first"},
		{true, "second look"},
		{true, "second look again"},
	} {
		if stuck, _ := m.run(t); stuck == nil {
			t.Errorf("without %q all is well", m.without)
		}
	}
}
