// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"runtime"
	"sync"
	"testing"
)

func testControlBlock(t *testing.T) *control {
	t.Helper()
	s := (&fakeHost{}).process(1).space()
	c, err := s.newControl(0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A visit and the guard keep each other out.
func TestVisitAndGuard(t *testing.T) {
	c := testControlBlock(t)
	v, same := c.tryVisit(1), c.tryVisit(1)
	if v == nil || same == nil || v == same {
		t.Fatal("two visits of one process")
	}
	if c.guardTry(2) || c.head.guard.Load() != 0 {
		t.Fatal("taken during a visit")
	}
	v.end()
	same.end()
	if !c.guardTry(2) {
		t.Fatal("not taken after the visits")
	}
	if c.tryVisit(1) != nil {
		t.Fatal("a visit while the guard is held")
	}
	c.guardUnlock(2)
	if v, _ = c.enter(1, nil); v == nil {
		t.Fatal("no visit after the guard")
	}
	v.end()
}

// Without a free place the guard is taken.
func TestVisitsWithoutAPlace(t *testing.T) {
	c := testControlBlock(t)
	for i := range visitPlaces {
		if c.tryVisit(uint32(i*7+1)) == nil {
			t.Fatalf("visit %d", i)
		}
	}
	if c.tryVisit(5) != nil {
		t.Fatal("more visits than places")
	}
	all := func(uint32, int) ownerState { return ended }
	if v, ok := c.enter(5, all); v != nil || !ok || c.head.guard.Load() != 5 {
		t.Fatal("neither a visit nor the guard")
	}
	for i := range c.head.visits {
		if c.head.visits[i].who.Load() != 0 {
			t.Fatalf("place %d of the dead is taken", i)
		}
	}
}

// One who has died in a visit is waited for until that is known.
func TestVisitOfTheDead(t *testing.T) {
	c := testControlBlock(t)
	c.tryVisit(3)
	asked := 0
	c.guardLock(1, func(who uint32, n int) ownerState {
		if who != 3 || n != asked {
			t.Fatalf("asked for %d, call %d, after %d", who, n, asked)
		}
		asked++
		if n == 2 {
			return ended
		}
		return living
	})
	if asked != 3 || c.head.guard.Load() != 1 {
		t.Fatalf("asked %d times", asked)
	}
}

// A block that is given out again has no visits.
func TestVisitsEndWithTheBlock(t *testing.T) {
	s := (&fakeHost{}).process(1).space()
	c, _ := s.newControl(0)
	c.tryVisit(1)
	c.head.visited.Store(1<<32 - 1)
	head := c.head
	s.freeControl(c, false)
	for range 1 << 10 {
		c, _ = s.newControl(0)
		if c.head == head {
			if !c.guardTry(9) {
				t.Fatal("visited")
			}
			return
		}
	}
	t.Fatal("the block was not given out again")
}

// Visitors and holders, many of each: what the one adds by the processor and
// the other by load and store adds up.
func TestVisitorsAndHolders(t *testing.T) {
	c := testControlBlock(t)
	const users, rounds = 8, 3000
	idle := func(uint32, int) ownerState { runtime.Gosched(); return living }
	target := struct {
		mu     sync.Mutex
		single int
		many   int
	}{}
	var wg sync.WaitGroup
	for u := range uint32(users) {
		wg.Go(func() {
			for i := range rounds {
				if u%2 == 0 || i%16 == 0 {
					c.guardLock(u+1, idle)
					target.many++
					c.guardPass(u+1, idle)
					target.many++
					c.guardUnlock(u + 1)
					continue
				}
				v := c.tryVisit(u + 1)
				if v == nil {
					v, _ = c.enter(u+1, idle)
				}
				target.mu.Lock()
				target.single++
				// Nobody with the guard is at work.
				target.many++
				target.many--
				target.mu.Unlock()
				if v != nil {
					v.end()
				} else {
					c.guardUnlock(u + 1)
				}
			}
		})
	}
	wg.Wait()
	if target.single+target.many/2 != users*rounds {
		t.Fatalf("%d alone and %d of many, want %d", target.single, target.many, users*rounds)
	}
}
