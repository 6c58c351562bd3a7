// SPDX-License-Identifier: Apache-2.0

package changepage

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"
)

// What members are handed is what was written down for that change, or nothing, also
// while the next one is written.
func TestBody(t *testing.T) {
	p := newPage(t, 2)
	if _, ok := p.Body(0); ok {
		t.Error("a page has a body from the start")
	}
	room := 8 * bodyWords(2)
	body := func(c Change) []byte { return bytes.Repeat([]byte{byte(c)}, int(c)%room) }
	var wg sync.WaitGroup
	last := changes(t)
	seen := 0
	wg.Go(func() {
		for c := Change(1); c <= last; {
			if b, ok := p.Body(c); ok {
				if !bytes.Equal(b, body(c)) {
					t.Errorf("change %d: %x", c, b)
				}
				seen++
			}
			if now, _ := p.Last(); now > c || c == last {
				c++
			}
		}
	})
	for c := Change(1); c <= last; c++ {
		if !p.Begin(c, 1, body(c)) {
			t.Errorf("no room for %d bytes", len(body(c)))
		}
		for range rand.IntN(200) {
			p.Last()
		}
	}
	wg.Wait()
	if p.putBody(last, make([]byte, room+1)) {
		t.Error("too much was written")
	}
	if _, ok := p.Body(last); ok {
		t.Error("what was there before is read in its place")
	}
	p.head.body.Store(uint64(last)<<32 | 1<<31)
	if _, ok := p.Body(last); ok {
		t.Error("more was read than there is")
	}
}

// Who sees a change begin finds what members are handed.
func TestBodyBeforeChange(t *testing.T) {
	p := newPage(t, 200)
	body := make([]byte, 8*bodyWords(200))
	last := 10 * changes(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for now := Change(0); now < last; {
			was, s := p.Last()
			now = was
			if _, ok := p.Body(now); ok || now == 0 || s != Open {
				continue
			}
			if again, s := p.Last(); again == now && s == Open {
				t.Errorf("change %d has begun without it", now)
				return
			}
		}
	})
	for c := Change(1); c <= last; c++ {
		p.Begin(c, 1, body)
		p.Break(c)
	}
	wg.Wait()
}

// What is handed out is claimed by the member or taken back by the agent, not both.
func TestClaims(t *testing.T) {
	const members = 8
	p := newPage(t, members)
	for c := Change(1); c < 200; c++ {
		var took [members]bool
		var wg sync.WaitGroup
		for i := range members {
			m := p.Member(i, 1, 1)
			wg.Go(func() {
				ok, again := m.Take(c)
				if took[i] = ok; again {
					t.Errorf("change %d was claimed before", c)
				}
				if ok, again = m.Take(c); ok != took[i] || again != took[i] {
					t.Errorf("claimed %v, and then %v %v", took[i], ok, again)
				}
			})
		}
		var back [members]bool
		for i := range members {
			back[i] = p.Close(c, i)
		}
		wg.Wait()
		for i := range members {
			if took[i] == back[i] || p.Close(c, i) != back[i] {
				t.Fatalf("change %d: member %d has it %v, the agent %v", c, i, took[i], back[i])
			}
			if ok, _ := p.Member(i, 1, 1).Take(c - 1); ok {
				t.Fatal("an older change is claimed")
			}
		}
	}
}

// A change that is over and holds is handed to who has not been, at the iteration of
// the others; not to who comes after it.
func TestMissed(t *testing.T) {
	p := newPage(t, 3)
	a, b, c := p.Member(0, 1, 1), p.Member(1, 1, 1), p.Member(2, 1, 1)
	for n := Change(1); n <= 3; n++ {
		at := 10 * uint64(n)
		a.Check(at)
		p.Begin(n, 3, nil)
		p.Announce(n)
		b.Check(at - 5) // finds the iteration, and is not there
		if a.Check(at+1) != n {
			t.Fatal("not handed")
		}
		if a.SetDelivered(n) {
			t.Error("nobody waits for that")
		}
		if n == 2 {
			p.Break(n)
		} else {
			p.Commit(n)
		}
		p.End(n)
		want := n
		if n == 2 {
			want = 0
		}
		if p.Missed(n, 0) || p.Missed(n, 1) != (want != 0) || p.Missed(n, 2) != (want != 0) {
			t.Errorf("change %d is missed by others", n)
		}
		if b.Check(at) != 0 || c.Check(at-1) != 0 {
			t.Error("handed too early")
		}
		p.SetAwaited(n)
		if b.Check(at+1) != want || c.Check(at+7) != want {
			t.Errorf("change %d is not handed to who looks late", n)
		}
		if want != 0 && (!b.SetDelivered(n) || !c.SetDelivered(n) || p.Missed(n, 1)) {
			t.Error("who waits for that is not told")
		}
		p.SetAwaited(0)
		if a.Check(at+8) != 0 || b.Check(at+8) != 0 || c.Check(at+8) != 0 {
			t.Errorf("change %d is handed out again", n)
		}
	}
	d := p.Member(2, 1, 1)
	if d.Join(); d.Check(99) != 0 || p.Missed(3, 2) {
		t.Error("handed to who came after it")
	}
}
