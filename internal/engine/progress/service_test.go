// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"
	"time"

	"gompi/internal/host/wait"
)

// A process at work of which no operation polls, and which comes to no 64th one, takes
// what comes by a transport and in memory at a tick: the service polls, or whoever is
// inside at the next chance. Where operations poll nobody does it besides.
func TestTick(t *testing.T) {
	f := newFake(1, policies[0]) // its own ticks are an hour apart
	c := f.calls[0]
	op := func(inside func()) { // that looks at memory
		f.Busy()
		f.Lead()
		inside()
		f.Rest()
	}
	f.mu.Lock()
	tick := func() {
		t.Helper()
		if f.lookIn(false) {
			t.Fatal("a process at work sleeps")
		}
	}
	chances := map[string]func(){
		"the service": func() { op(func() {}); tick() },
		"the next operation": func() {
			op(tick)
			op(f.Attend)
		},
		"an operation that yields": func() {
			op(func() {
				tick()
				for p := (MemoryWait{}); p.YieldCost < 2 && f.Pass(&p); {
				}
			})
		},
		"who has the lock": func() {
			if f.enter() {
				t.Fatal("somebody is inside, and the service was let in")
			}
			op(f.Attend)
		},
	}
	for who, look := range chances {
		for _, memory := range []bool{false, true} {
			was, thorough := c.Hits, f.thorough
			c.send(memory)
			op(f.Attend)
			if f.looks%attendEvery == 0 || c.Hits != was {
				t.Fatal("the operation has polled")
			}
			if look(); c.Hits != was+1 {
				t.Errorf("%s has not polled: %s", who, f.state())
			}
			if f.thorough == thorough {
				t.Errorf("%s has passed over what is dear to look at", who)
			}
			thorough = f.thorough
			op(func() {
				f.Poll(true)
				tick()
				f.Attend()
			})
			op(func() { f.Poll(true) })
			if tick(); f.thorough != thorough {
				t.Errorf("%s: somebody has polled though operations do", who)
			}
		}
	}
	f.mu.Unlock()
	f.stopAsleep(t)
}

// However many ranks share the processors, their service goroutines leave these
// to the ranks.
func TestServiceShare(t *testing.T) {
	const look = 30 * time.Microsecond
	for _, cpus := range []int{1, 2, 16} {
		for _, ranks := range []int{2, 4, 16, 64, 100, 300, 1000} {
			p := wait.ForOS(ranks, cpus)
			if p.Spare {
				continue
			}
			if share := float64(ranks) * float64(look) / float64(longestTick(&p)); share > 0.25 {
				t.Errorf("%d ranks on %d processors: %.2f processors look whether the ranks work", ranks, cpus, share)
			}
		}
	}
}
