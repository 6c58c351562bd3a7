// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
)

// A model of the bakery in which every access to a shared word is a step, so
// that all interleavings of a few parties can be tried: that of attempt, with
// the sleeping and waking around it. TestBakeryIsItsModel holds the two
// together.

const modelParties = 3

type modelStep uint8

const (
	mIdle modelStep = iota
	mTicket
	mPublish
	mEnter
	mClear // in enter
	mHold
	mInside
	mBlocked
	mReap
	mReapClear
	mParked
	mLeave
	mFreeAny   // does anybody sleep?
	mFreeFirst // who is first?
	mFreeWake
	mDone
)

// modelWord is a party's word; its kind is that of the party.
type modelWord struct {
	phase  lockWord
	asleep bool
	ticket uint8
}

// modelParty is what a party knows by itself.
type modelParty struct {
	at       modelStep
	then     modelStep // after rousing
	i, next  int8
	fresh    bool
	first    bool // this enter began fresh
	sleepers bool
	seen     modelWord
	least    int8 // who is first
	leastT   uint8
	alone    int8 // who is first of those who want the lock alone
	aloneT   uint8
	ticket   uint8
	asleep   bool
	known    uint8 // deaths heard of
	token    bool  // somebody woke it
	dead     bool
	failed   bool
	rounds   int8
}

// modelState is all there is. Comparable.
type modelState struct {
	ticket    uint8
	words     [modelParties]modelWord
	parties   [modelParties]modelParty
	deaths    int8 // that may still happen
	withdraws int8
}

// model is what does not change. without names what is left out, to see that
// it is missed.
type model struct {
	n       int
	alone   [modelParties]bool
	without string
}

func (m *model) conflicts(i, j int) bool { return m.alone[i] || m.alone[j] }

// stops is attempt.stops.
func (m *model) stops(p *modelParty, me int, w modelWord, i int) bool {
	switch w.phase {
	case lockIdle:
		return false
	case lockChoosing:
		return m.conflicts(i, me) && m.without != "choosing"
	}
	return m.conflicts(i, me) && w.ticket < p.ticket
}

// loop begins a pass over the words.
func (p *modelParty) loop(at modelStep, i int8) { p.at, p.i = at, i }

func (p *modelParty) wakeFree(then modelStep) {
	p.then, p.sleepers = then, false
	p.loop(mFreeAny, 0)
}

func (p *modelParty) enterFrom(i int8) {
	p.first, p.fresh, p.sleepers = p.fresh, false, false
	p.loop(mEnter, i)
}

// step does the next access of a party, which is one that can go on.
func (m *model) step(s *modelState, me int) {
	p, n := &s.parties[me], int8(m.n)
	switch p.at {
	case mIdle:
		s.words[me] = modelWord{phase: lockChoosing}
		p.at = mTicket
	case mTicket:
		s.ticket++
		p.ticket = s.ticket
		p.at = mPublish
	case mPublish:
		s.words[me] = modelWord{phase: lockWaiting, ticket: p.ticket}
		p.next, p.fresh = 0, true
		p.enterFrom(0)
	case mEnter:
		w := s.words[p.i]
		p.sleepers = p.sleepers || w.asleep
		switch {
		case int(p.i) == me || !m.stops(p, me, w, int(p.i)):
			p.i++
		case p.known>>p.i&1 == 0:
			p.next = p.i
			if p.at = mBlocked; p.first && m.without != "wakeFree after choosing" {
				p.wakeFree(mBlocked)
			}
		case w.phase == lockHeld:
			p.failed, p.at = true, mLeave
		default:
			p.seen, p.at = w, mClear
		}
		if p.at == mEnter && p.i == n {
			p.next, p.at = n, mHold
		}
	case mClear:
		if s.words[p.i] == p.seen {
			s.words[p.i] = modelWord{}
		}
		p.at = mEnter
	case mHold:
		s.words[me] = modelWord{phase: lockHeld, ticket: p.ticket}
		if p.at = mInside; p.first && p.sleepers {
			p.wakeFree(mInside)
		}
	case mInside:
		p.at = mLeave
	case mBlocked: // the process is about to sleep, and has seen all that came
		p.token = false
		s.words[me] = modelWord{phase: lockWaiting, ticket: p.ticket, asleep: true}
		p.asleep = true
		m.reapDead(p)
	case mReap:
		w := s.words[p.i]
		switch {
		case int(p.i) == me || !m.stops(p, me, w, int(p.i)) || p.known>>p.i&1 == 0:
			m.reaped(p)
		case w.phase == lockHeld:
			p.failed, p.at = true, mLeave
		default:
			p.seen, p.at = w, mReapClear
		}
	case mReapClear:
		if s.words[p.i] == p.seen {
			s.words[p.i] = modelWord{}
		}
		m.reaped(p)
	case mParked: // it has a token
		p.token, p.asleep = false, false
		s.words[me] = modelWord{phase: lockWaiting, ticket: p.ticket}
		p.enterFrom(p.next)
	case mLeave:
		s.words[me] = modelWord{}
		p.asleep = false
		p.rounds--
		if p.then = mIdle; p.rounds == 0 || p.failed {
			p.then = mDone
		}
		p.wakeFree(p.then)
	case mFreeAny:
		p.sleepers = p.sleepers || s.words[p.i].asleep
		if p.i++; p.i == n {
			if p.at = p.then; p.sleepers {
				p.least, p.alone = -1, -1
				p.loop(mFreeFirst, 0)
			}
		}
	case mFreeFirst:
		if w := s.words[p.i]; w.phase >= lockWaiting {
			if p.least < 0 || w.ticket < p.leastT {
				p.least, p.leastT = p.i, w.ticket
			}
			if m.alone[p.i] && (p.alone < 0 || w.ticket < p.aloneT) {
				p.alone, p.aloneT = p.i, w.ticket
			}
		}
		if p.i++; p.i == n {
			p.loop(mFreeWake, 0)
		}
	case mFreeWake:
		if w := s.words[p.i]; w.phase == lockWaiting && w.asleep &&
			(p.i == p.least || !m.alone[p.i] && (p.alone < 0 || w.ticket < p.aloneT)) {
			s.parties[p.i].token = true
		}
		if p.i++; p.i == n {
			p.at = p.then
		}
	}
	if p.at == mBlocked && p.asleep {
		p.at = mParked
	}
}

// reapDead begins that before sleeping, or passes it over.
func (m *model) reapDead(p *modelParty) {
	if p.loop(mReap, p.next); m.without == "mourning" {
		p.enterFrom(p.next)
	}
}

func (m *model) reaped(p *modelParty) {
	if p.at, p.i = mReap, p.i+1; int(p.i) == m.n {
		p.enterFrom(p.next)
	}
}

// wrong reports what must never be.
func (m *model) wrong(s *modelState) string {
	for i := range m.n {
		p := &s.parties[i]
		inside := s.words[i].phase == lockHeld
		for j := range m.n {
			q := &s.parties[j]
			if i < j && inside && s.words[j].phase == lockHeld && m.conflicts(i, j) {
				return fmt.Sprintf("%d and %d hold the lock", i, j)
			}
			if w := s.words[j]; i != j && p.at == mInside && !p.dead && !q.dead && w.phase == lockWaiting && m.conflicts(i, j) && w.ticket < p.ticket {
				return fmt.Sprintf("%d has overtaken %d", i, j)
			}
		}
	}
	return ""
}

// next appends the states that may follow.
func (m *model) nextStates(s *modelState, out []modelState) []modelState {
	for me := range m.n {
		p := &s.parties[me]
		if p.dead {
			for other := range m.n {
				if q := &s.parties[other]; !q.dead && q.known>>me&1 == 0 {
					t := *s
					t.parties[other].known |= 1 << me
					t.parties[other].token = true
					out = append(out, t)
				}
			}
			continue
		}
		if p.at == mDone {
			continue
		}
		if p.at != mParked || p.token {
			t := *s
			m.step(&t, me)
			out = append(out, t)
		}
		if s.withdraws > 0 && (p.at == mParked || p.at == mBlocked) {
			t := *s
			t.withdraws--
			t.parties[me].at = mLeave
			out = append(out, t)
		}
		if s.deaths > 0 {
			t := *s
			t.deaths--
			t.parties[me].dead = true
			out = append(out, t)
		}
	}
	return out
}

// normal takes away what makes no difference any more, so that equal states are
// known as such.
func (s *modelState) normal() {
	for i := range s.parties {
		p := &s.parties[i]
		switch {
		case p.dead:
			*p = modelParty{dead: true}
			continue
		case p.at == mDone:
			*p = modelParty{at: mDone, known: p.known}
			continue
		case p.at == mIdle:
			*p = modelParty{at: mIdle, known: p.known, rounds: p.rounds}
			continue
		}
		if !p.asleep {
			p.token = false
		}
		if p.at != mClear && p.at != mReapClear {
			p.seen = modelWord{}
		}
		if p.at != mFreeFirst && p.at != mFreeWake {
			p.least, p.leastT, p.alone, p.aloneT = 0, 0, 0, 0
		}
		if p.at < mFreeAny {
			p.then = 0
		}
		switch p.at {
		case mTicket, mPublish, mInside, mBlocked, mParked, mLeave:
			p.i, p.sleepers, p.first = 0, false, false
		}
		if p.at == mInside || p.at == mLeave {
			p.next = 0
		}
	}
}

// explore tries everything; it returns what is wrong, and how many states there
// are.
func (m *model) explore(start modelState) (string, int) {
	seen := map[modelState]struct{}{start: {}}
	stack := []modelState{start}
	var next []modelState
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if why := m.wrong(&s); why != "" {
			return fmt.Sprintf("%s: %+v", why, s), len(seen)
		}
		next = m.nextStates(&s, next[:0])
		if len(next) == 0 {
			for i := range m.n {
				if p := &s.parties[i]; p.at != mDone && !p.dead {
					return fmt.Sprintf("%d sleeps for ever: %+v", i, s), len(seen)
				}
			}
		}
		for _, t := range next {
			t.normal()
			if _, ok := seen[t]; !ok {
				seen[t] = struct{}{}
				stack = append(stack, t)
			}
		}
	}
	return "", len(seen)
}

func (m *model) start(rounds, deaths, withdraws int8) (s modelState) {
	for i := range m.n {
		s.parties[i].rounds = rounds
	}
	s.deaths, s.withdraws = deaths, withdraws
	return s
}

type modelCase struct {
	n                 int
	alone             [modelParties]bool
	rounds            int8
	deaths, withdraws int8
	long              bool
}

var modelCases = []modelCase{
	{2, [3]bool{true, true}, 2, 1, 1, false},
	{2, [3]bool{true, false}, 2, 1, 1, false},
	{2, [3]bool{false, false}, 1, 2, 1, false},
	{3, [3]bool{true, true, true}, 1, 0, 0, false},
	{3, [3]bool{true, false, false}, 1, 0, 0, true},
	{3, [3]bool{true, true, true}, 1, 1, 0, true},
	{3, [3]bool{true, true, false}, 1, 1, 0, true},
	{3, [3]bool{true, false, false}, 1, 1, 0, true},
	{3, [3]bool{true, true, false}, 1, 0, 1, true},
	{3, [3]bool{true, false, false}, 1, 0, 1, true},
}

func TestBakeryInAllInterleavings(t *testing.T) {
	for _, c := range modelCases {
		if c.long && os.Getenv("GOMPI_TEST") != "long" {
			continue
		}
		m := model{n: c.n, alone: c.alone}
		why, states := m.explore(m.start(c.rounds, c.deaths, c.withdraws))
		if t.Logf("%+v: %d states", c, states); why != "" {
			t.Errorf("%+v: %s", c, why)
		}
	}
}

// What is left out is missed: the model can fail.
func TestBakeryModelSeesWhatIsMissing(t *testing.T) {
	for without, c := range map[string]modelCase{
		"choosing":                {2, [3]bool{true, true}, 1, 0, 0, false},
		"wakeFree after choosing": {3, [3]bool{true, true, true}, 1, 0, 0, false},
		"mourning":                {3, [3]bool{true, true, true}, 1, 1, 1, true},
	} {
		if c.long && os.Getenv("GOMPI_TEST") != "long" {
			continue
		}
		m := model{n: c.n, alone: c.alone, without: without}
		if why, states := m.explore(m.start(c.rounds, c.deaths, c.withdraws)); why == "" {
			t.Errorf("nothing is wrong without %s in %d states", without, states)
		}
	}
}

// modelTwin is a real party beside one of the model.
type modelTwin struct {
	attempt
	s  *modelState
	me int
	ps []*modelTwin
	// token is that of the real one.
	token bool
}

func (p *modelTwin) gone(i int) bool         { return p.s.parties[p.me].known>>i&1 != 0 }
func (p *modelTwin) wake(i int, _ lockWord)  { p.ps[i].token = true }
func (p *modelTwin) at() modelStep           { return p.s.parties[p.me].at }
func (p *modelTwin) modelParty() *modelParty { return &p.s.parties[p.me] }

func TestBakeryIsItsModel(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := model{n: modelParties}
		for i := range m.alone {
			m.alone[i] = r.IntN(2) == 0
		}
		s := m.start(100, 0, 0)
		var ticket atomic.Uint64
		words := make([]atomic.Uint64, m.n)
		ps := make([]*modelTwin, m.n)
		for i := range ps {
			ps[i] = &modelTwin{s: &s, me: i, ps: ps}
			ps[i].attempt = attempt{ticket: &ticket, words: words, all: ps[i], me: i}
		}
		check := func(what string, i int) {
			t.Helper()
			for j := range words {
				w, v := lockWord(words[j].Load()), s.words[j]
				if w.phase() != v.phase || w.ticket() != lockWord(v.ticket) || (w&lockAsleep != 0) != v.asleep {
					t.Fatalf("seed %d: %d %s: word of %d is %#x, in the model %+v", seed, i, what, j, w, v)
				}
				if ps[j].token != s.parties[j].token {
					t.Fatalf("seed %d: %d %s: %d is woken: %v, in the model %v", seed, i, what, j, ps[j].token, s.parties[j].token)
				}
			}
		}
		// run does steps of the model until a call of the real one is over.
		run := func(i int, until ...modelStep) {
			for n := 0; ; n++ {
				m.step(&s, i)
				for _, at := range until {
					if ps[i].at() == at {
						return
					}
				}
				if n > 100 {
					t.Fatalf("seed %d: party %d is at %d", seed, i, ps[i].at())
				}
			}
		}
		fails := func(p *modelTwin, dead int) {
			if dead >= 0 != p.modelParty().failed {
				t.Fatalf("seed %d: %d: dead holder %d, in the model %v", seed, p.me, dead, p.modelParty().failed)
			}
			if dead >= 0 {
				p.leave()
				run(p.me, mDone)
				check("gives up", p.me)
			}
		}
		for range 60 {
			i := r.IntN(m.n)
			p := ps[i]
			mp := p.modelParty()
			switch {
			case mp.dead || p.at() == mDone:
			case s.ticket > 200:
			case r.IntN(40) == 0:
				mp.dead = true
				for j := range ps {
					if j != i {
						s.parties[j].known |= 1 << i
						s.parties[j].token, ps[j].token = true, true
					}
				}
			case p.at() == mIdle && r.IntN(2) == 0: // others see it choosing
				words[i].Store(uint64(lockChoosing | lockKind(m.alone[i])))
				m.step(&s, i)
			case p.at() == mIdle || p.at() == mTicket:
				words[i].Store(0)
				if err := p.begin(lockKind(m.alone[i])); err != nil {
					t.Fatal(err)
				}
				in, dead := p.enter()
				run(i, mInside, mBlocked, mLeave)
				if in != (p.at() == mInside) {
					t.Fatalf("seed %d: %d enters: %v, in the model it is at %d", seed, i, in, p.at())
				}
				if dead < 0 {
					check("begins", i)
				}
				fails(p, dead)
			case p.at() == mInside:
				run(i, mLeave)
				p.leave()
				run(i, mIdle, mDone)
				check("leaves", i)
			case p.at() == mBlocked:
				p.token = false
				p.setAsleep(true)
				in, dead := false, p.reapDead()
				if dead < 0 {
					in, dead = p.enter()
				}
				run(i, mInside, mParked, mLeave)
				if in != (p.at() == mInside) {
					t.Fatalf("seed %d: %d setsAsleep: %v, in the model it is at %d", seed, i, in, p.at())
				}
				if dead < 0 {
					check("setsAsleep", i)
				}
				fails(p, dead)
			case p.at() == mParked && p.token:
				p.token = false
				p.setAsleep(false)
				in, dead := p.enter()
				run(i, mInside, mBlocked, mLeave)
				if in != (p.at() == mInside) {
					t.Fatalf("seed %d: %d wakes: %v, in the model it is at %d", seed, i, in, p.at())
				}
				if dead < 0 {
					check("wakes", i)
				}
				fails(p, dead)
			}
		}
	}
}

func lockKind(alone bool) lockWord {
	if alone {
		return lockExclusive
	}
	return 0
}
