// SPDX-License-Identifier: Apache-2.0

package changepage

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func newPage(t testing.TB, members int) Page {
	t.Helper()
	words := make([]uint64, Bytes(members)/8)
	p, err := View(bytesOf(words), members)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func changes(t *testing.T) Change {
	if testing.Short() {
		return 100
	}
	return 500
}

// Members that wait for each other's messages between Checks are handed each change
// at the same iteration, or none of them is; all vote.
func TestRing(t *testing.T) {
	const members, step = 4, 3
	last := changes(t)
	p := newPage(t, members)
	var handed [members]map[Change]uint64
	var next [members]chan struct{}
	var stop atomic.Bool
	over := make(chan struct{})
	for i := range next {
		next[i] = make(chan struct{}, 2)
		handed[i] = map[Change]uint64{}
	}
	var wg sync.WaitGroup
	for i := range members {
		m := p.Member(i, step, 1)
		wg.Go(func() {
			for it := uint64(0); ; it += step {
				if c := m.Check(it); c != 0 {
					handed[i][c] = it
					p.Vote(c)
				}
				if stop.Load() {
					close(next[i])
					return
				}
				select {
				case next[i] <- struct{}{}:
				case <-over: // and so may be who takes it
				}
				if _, ok := <-next[(i+members-1)%members]; !ok {
					close(next[i])
					return
				}
			}
		})
	}
	rolled := map[Change]bool{}
	for c := Change(1); c <= last; c++ {
		p.Begin(c, members, nil)
		p.Announce(c)
		if c%3 == 0 {
			for range c % 64 {
				runtime.Gosched()
			}
			p.Withdraw(c)
		}
		for {
			s, ok := p.Decision(c)
			if !ok {
				t.Fatalf("change %d has no verdict", c)
			}
			if rolled[c] = s == RolledBack; s >= Committed {
				break
			}
			runtime.Gosched()
		}
		p.End(c)
	}
	stop.Store(true)
	close(over)
	wg.Wait()
	some := 0
	for c := Change(1); c <= last; c++ {
		at, all := handed[0][c]
		some += map[bool]int{true: 1}[all]
		for i := range members {
			it, ok := handed[i][c]
			if ok == rolled[c] || ok != all || it != at {
				t.Errorf("change %d, rolled back %v: member 0 has it at %d %v, member %d at %d %v", c, rolled[c], at, all, i, it, ok)
			}
		}
	}
	if some == 0 || some == int(last) && last > 200 {
		t.Errorf("%d of %d changes were handed out", some, last)
	}
}

// The calls of all members of one number see the same change, and each is seen that
// is accepted. Members that are waited for tell when that may be over.
func TestQueries(t *testing.T) {
	const members, callers = 3, 2
	last := changes(t)
	p := newPage(t, members)
	var saw [members]sync.Map // what calls saw, if anything
	var calls [members]atomic.Uint64
	var told atomic.Uint64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for i := range members {
		m := p.Member(i, 1, 1)
		for range callers {
			wg.Go(func() {
				for !stop.Load() {
					k := m.BeginCall()
					see := func() Change {
						for {
							if c, ok := m.Visible(k); ok {
								return c
							}
							runtime.Gosched()
						}
					}
					c := see()
					if c != 0 {
						if ok, _ := p.Accept(c); !ok {
							c = see()
						}
					}
					if m.EndCall(k) != 0 {
						told.Add(1)
					}
					if c != 0 {
						saw[i].Store(k.Number, c)
					}
					for n := calls[i].Add(1); n > calls[(i+1)%members].Load()+50 && !stop.Load(); {
						runtime.Gosched()
					}
				}
			})
		}
	}
	all := func(int) bool { return true }
	some := 0 // accepted
	for c := Change(1); c <= last; c++ {
		p.Begin(c, members, nil)
		p.ShowQueries(c)
		for from := calls[0].Load(); calls[0].Load() < from+uint64(c%3)*100; {
			runtime.Gosched()
		}
		handed := p.Withdraw(c) != RolledBack
		if handed {
			some++
			if c%2 == 0 {
				p.Break(c)
			}
		}
		p.HideQueries(c, handed)
		p.SetAwaited(c)
		for d := (Drain{}); ; {
			before := told.Load()
			behind := false
			for i := range members {
				behind = behind || p.StillVisible(c, i)
			}
			if !behind && p.Drained(&d, all) {
				break
			}
			for told.Load() == before {
				runtime.Gosched()
			}
		}
		p.SetAwaited(0)
	}
	stop.Store(true)
	wg.Wait()
	seen := map[Change]bool{}
	for i := range members {
		saw[i].Range(func(k, c any) bool {
			seen[c.(Change)] = true
			for j := range members {
				if other, ok := saw[j].Load(k); calls[j].Load() >= k.(uint64) && (!ok || other != c) {
					t.Errorf("call %d of member %d sees %d, of member %d %v", k, i, c, j, other)
				}
			}
			return true
		})
	}
	if len(seen) != some || some < int(last)/2 {
		t.Errorf("%d of %d changes were seen, %d accepted", len(seen), last, some)
	}
}

// A member stopped in the midst of an older change writes nothing into a newer one.
func TestLate(t *testing.T) {
	p := newPage(t, 2)
	p.Begin(1, 2, nil)
	p.Announce(1)
	p.Agree(1, 1, 1)
	if s := p.Withdraw(1); s != RolledBack {
		t.Fatal(s)
	}
	p.End(1)
	p.Begin(2, 2, nil)
	p.Vote(1)
	p.Commit(1)
	p.agree(1, 7)
	if ok, _ := p.Accept(1); ok || p.Missing(2) != 2 {
		t.Errorf("change 1 was accepted, or %d votes of 2 are missing for change 2", p.Missing(2))
	}
	if _, ok := p.Agreed(2); ok {
		t.Error("the iteration of change 1 counts for change 2")
	}
	if s, ok := p.Decision(2); s != Open || !ok {
		t.Errorf("change 2 is %v, %v", s, ok)
	}
	if s, ok := p.Decision(1); s != RolledBack || !ok {
		t.Errorf("change 1 is %v, %v", s, ok)
	}
}

// Of members that begin anywhere, after the change was shown, the first finds the
// iteration: it is one that they come to, and the one that Agreed tells.
func TestUnbegun(t *testing.T) {
	for name, show := range map[string]func(Page){
		"agreed":    func(p Page) { p.Announce(1); p.Agree(1, 1, 1) },
		"published": func(p Page) { p.Pause(1); p.Publish(1, NotStarted) },
	} {
		p := newPage(t, 2)
		a, b := p.Member(0, 1, 1), p.Member(1, 1, 1)
		p.Begin(1, 2, nil)
		show(p)
		if n, ok := p.Agreed(1); ok || p.Announced() != 1 {
			t.Errorf("%s: iteration %d before anybody has begun, change %d shown", name, n, p.Announced())
		}
		if x, y := a.Check(1000), b.Check(999); x != 0 || y != 0 {
			t.Errorf("%s: handed %d and %d by the first Check", name, x, y)
		}
		if n, ok := p.Agreed(1); n != 1001 || !ok {
			t.Errorf("%s: iteration %d, %v, want 1001", name, n, ok)
		}
		if x, y := b.Check(1000), a.Check(1001); x != 0 || y != 1 || b.Check(1001) != 1 {
			t.Errorf("%s: handed %d at 1000, %d at 1001", name, x, y)
		}
	}
}

// Members whose iterations cannot be compared are handed a change by their next
// Checks.
func TestNow(t *testing.T) {
	p := newPage(t, 2)
	a, b := p.Member(0, 1, 1), p.Member(1, 1, 1)
	for c := Change(1); c < 5; c++ {
		p.Begin(c, 2, nil)
		if a.Check(Now) != 0 {
			t.Fatal("handed what was not shown")
		}
		p.Announce(c)
		p.Agree(c, 1, 1)
		if x, y := a.Check(Now), b.Check(Now); x != c || y != c {
			t.Fatalf("handed %d and %d, want %d", x, y, c)
		}
		if x := a.Check(Now); x != 0 || !a.First() || b.First() {
			t.Fatalf("change %d again, first %v %v", x, a.First(), b.First())
		}
		p.End(c)
	}
}

// Members of several pages are handed a change at one iteration, which somebody else
// finds while they are held.
func TestAsked(t *testing.T) {
	p, q := newPage(t, 1), newPage(t, 2)
	a, b, far := p.Member(0, 1, 1), q.Member(0, 1, 1), q.Member(1, 1, 1)
	for c := Change(1); c < 4; c++ {
		at := 10 * uint64(c)
		for _, x := range []Page{p, q} {
			x.Begin(c, 1<<31, nil)
		}
		if a.Check(at) != 0 || b.Check(at) != 0 || far.Check(at+3) != 0 {
			t.Fatal("handed what was not shown")
		}
		p.Pause(c)
		q.Pause(c)
		if a.Check(at+1) != Paused || p.PausedChange() != c || b.Check(at+1) != Paused {
			t.Fatal("a Check while the iteration is found")
		}
		if c == 2 {
			for _, x := range []Page{p, q} {
				x.Withdraw(c)
				x.End(c)
			}
			if a.Check(at+1) != 0 || b.Check(at+9) != 0 || far.Check(at+9) != 0 {
				t.Error("handed what was rolled back")
			}
			continue
		}
		p.Publish(c, at+4)
		q.Publish(c, at+4)
		if a.Check(at+1) != 0 || b.Check(at+3) != 0 || p.PausedChange() != 0 {
			t.Error("handed before the iteration")
		}
		if a.Check(at+4) != c || b.Check(at+4) != c || far.Check(at+4) != c {
			t.Error("not handed at the iteration")
		}
		if s, ok := q.Decision(c); s != Accepted || !ok {
			t.Errorf("%v, %v", s, ok)
		}
		for _, x := range []Page{p, q} {
			x.Commit(c)
			x.End(c)
		}
	}
}

// Each swap is won by one.
func TestVerdicts(t *testing.T) {
	p := newPage(t, 2)
	for c, tt := range []struct {
		do   func(Change)
		want State
	}{
		{func(c Change) { p.Withdraw(c); p.Accept(c); p.Vote(c); p.Vote(c) }, RolledBack},
		{func(c Change) { p.Accept(c); p.Withdraw(c) }, Accepted},
		{func(c Change) { p.Accept(c); p.Break(c); p.Vote(c); p.Vote(c) }, RolledBack},
		{func(c Change) { p.Accept(c); p.Vote(c) }, Accepted},
		{func(c Change) { p.Vote(c); p.Accept(c); p.Vote(c); p.Break(c) }, Committed},
		{func(c Change) { p.Commit(c) }, Open},
		{func(c Change) { p.Vote(c); p.Vote(c); p.Accept(c) }, Committed},
		{func(c Change) { p.Accept(c); p.Commit(c) }, Committed},
		{func(c Change) {
			if ok, first := p.Accept(c); !ok || !first {
				t.Error("the first is not told so")
			}
			if ok, first := p.Accept(c); !ok || first {
				t.Error("the second is told that it is the first")
			}
			if p.Vote(c) || !p.Vote(c) || p.Vote(c) || p.Commit(c) {
				t.Error("another than the last vote commits")
			}
		}, Committed},
		{func(c Change) { p.Break(c) }, RolledBack},
	} {
		n := Change(c + 1)
		p.Begin(n, 2, nil)
		tt.do(n)
		if got, ok := p.Decision(n); got != tt.want || !ok {
			t.Errorf("case %d: %v, want %v", c, got, tt.want)
		}
	}
}

// Whatever others write, no Check waits and no number is out of range.
func FuzzScribbled(f *testing.F) {
	f.Add(uint64(5), uint64(1)<<numberBits|3, ^uint64(0), uint64(6), uint64(7))
	f.Fuzz(func(t *testing.T, announcement, agreed, line, word, it uint64) {
		p := newPage(t, 2)
		m := p.Member(0, 1, 1)
		p.head.announcement.Store(announcement)
		p.head.agreed.Store(agreed)
		p.head.decision.Store(word)
		p.members[1].iteration.Store(line)
		for range 3 {
			c := m.Check(it % MaxNumber)
			if n, ok := p.Agreed(c); ok && n > MaxNumber {
				t.Fatalf("agreed on %d", n)
			}
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	p := newPage(b, 2)
	m := p.Member(0, 1, 1)
	it := uint64(0)
	for b.Loop() {
		if m.Check(it) != 0 {
			b.Fatal("a change")
		}
		it++
	}
}

// Who looks late learns what was decided of a change that others have followed.
func TestPast(t *testing.T) {
	p := newPage(t, 1)
	committed := func(c Change) bool { return c%3 == 0 || c%5 == 0 }
	const last = 100
	for c := Change(1); c <= last; c++ {
		if c%7 == 6 && !committed(c) {
			continue // it was rolled back before it came to the page
		}
		p.Begin(c, 1, nil)
		if s, ok := p.Decision(c); s != Open || !ok {
			t.Fatalf("change %d begins %v, %v", c, s, ok)
		}
		if p.Accept(c); committed(c) {
			p.Commit(c)
		} else {
			p.Break(c)
		}
		for d := Change(1); d <= c; d++ {
			want := map[bool]State{true: Committed, false: RolledBack}[committed(d)]
			if s, ok := p.Decision(d); ok != (d+pastBits >= c) || ok && s != want {
				t.Fatalf("after change %d: %d is %v, %v; want %v", c, d, s, ok, want)
			}
		}
	}
	if _, ok := p.Decision(last + 1); ok {
		t.Error("the next is known")
	}
}

// What was decided of a change is not told from one that came 1<<16 later.
func TestPastComesAround(t *testing.T) {
	p := newPage(t, 1)
	for _, c := range []Change{3, 1<<16 + 4, 1<<16 + 5, 1<<17 + 6} {
		p.Begin(c, 1, nil)
		p.Accept(c)
		p.Commit(c)
	}
	for c := Change(1); c < 100; c++ {
		if s, ok := p.Decision(c); ok {
			t.Errorf("change %d of long ago is %v", c, s)
		}
	}
	if s, ok := p.Decision(1<<17 + 6); !ok || s != Committed {
		t.Errorf("the last change is %v, %v", s, ok)
	}
}
