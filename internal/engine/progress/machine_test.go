// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/host/wait"
)

// fake is a process of some goroutines, for each of which events come from
// outside, by a transport or as words in memory.
type fake struct {
	Machine
	mu      *wait.Gate
	sleeper wait.Sleeper
	calls   []*fakeCall
	// thorough counts polls that pass over nothing.
	thorough int
	told     atomic.Bool // the process says that it sleeps
	dozes    atomic.Bool // so does its hook
}

// fakeCall is what one goroutine waits for. Others write came and word, and end.
type fakeCall struct {
	Waiter
	f        *fake
	came     atomic.Int64 // events in the transport
	word     atomic.Int64 // and in memory
	ended    atomic.Bool
	expired  bool
	answered chan struct{}
	parks    int
}

func newFake(goroutines int, pol wait.Policy) *fake {
	f := &fake{mu: wait.NewGate(), sleeper: wait.NewChan()}
	f.Init(f, f.mu, f.sleeper, pol)
	f.service.tick = time.Hour // nothing here may depend on it
	for range goroutines {
		c := &fakeCall{f: f, answered: make(chan struct{}, 1)}
		c.Waiter.Init(c)
		f.calls = append(f.calls, c)
	}
	f.AddHook((*fakeHook)(f))
	f.Start()
	return f
}

func (f *fake) stop(t *testing.T) {
	f.mu.Lock()
	f.Close()
	f.mu.Unlock()
	f.Stop()
	if f.leading || f.armed || f.waits != 0 || f.followers.first != nil {
		t.Errorf("left behind: %s", f.state())
	}
}

func (f *fake) state() string {
	return fmt.Sprintf("leading %v, armed %v, %d wait, followers %v, %d turns", f.leading, f.armed, f.waits, f.followers.first != nil, f.Turns)
}

func (f *fake) Poll(spin bool) (n int) {
	f.Turns++
	if !spin {
		f.thorough++
	}
	for _, c := range f.calls {
		for k := c.came.Swap(0); k > 0; k-- {
			f.Hit(&c.Waiter)
			n++
		}
	}
	return n + f.Step()
}

func (f *fake) Step() int { return f.Machine.Step() }

func (f *fake) Arm() bool {
	gap()
	f.told.Store(true)
	gap()
	for _, c := range f.calls {
		if c.came.Load() != 0 {
			return false
		}
	}
	return true
}

func (f *fake) Disarm() { f.told.Store(false) }

// fakeHook looks at the words.
type fakeHook fake

func (h *fakeHook) Step() (moved bool) {
	f := (*fake)(h)
	for _, c := range f.calls {
		for k := c.word.Swap(0); k > 0; k-- {
			f.Hit(&c.Waiter)
			moved = true
		}
	}
	return moved
}

func (h *fakeHook) PrepareSleep() bool {
	gap()
	h.dozes.Store(true)
	gap()
	return false
}

func (h *fakeHook) EndSleep() { h.dozes.Store(false) }

// gap lets others run between two steps, at times.
func gap() {
	if rand.IntN(8) == 0 {
		runtime.Gosched()
	}
}

// send has an event come.
func (c *fakeCall) send(memory bool) {
	f := c.f
	if memory {
		c.word.Add(1)
		gap()
		if f.dozes.Load() && f.dozes.Swap(false) {
			f.sleeper.Wake()
		}
		return
	}
	c.came.Add(1)
	gap()
	if f.told.Load() && f.told.Swap(false) {
		f.sleeper.Wake()
	}
}

func (c *fakeCall) Ended() bool { return !c.expired && c.ended.Load() }

func (c *fakeCall) Expire() { c.expired, c.Hits = true, c.Need }

func (c *fakeCall) Park() []func() bool { c.parks++; return nil }

func (c *fakeCall) Note() {}

func (c *fakeCall) Answer() { c.answered <- struct{}{} }

// end gives the call up.
func (c *fakeCall) end() {
	c.ended.Store(true)
	c.f.mu.Lock()
	c.f.Unpark(&c.Waiter)
	c.f.mu.Unlock()
}

// wait waits for need events. It returns false if the call was given up.
func (c *fakeCall) wait(need int) bool {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.Need = need
	c.f.Await(&c.Waiter)
	over := c.Hits >= need && !c.expired
	c.Hits -= min(c.Hits, need) // some for the next call may have come
	c.expired = false
	c.ended.Store(false)
	return over
}

// soon fails the test with the state of f if done does not happen.
func (f *fake) soon(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		s := "somebody holds the lock"
		if f.mu.TryLock() {
			s = f.state()
		}
		t.Fatalf("%s: a wake-up was lost: %s", what, s)
	}
}

// pass lets some time pass: none, a moment, or enough to fall asleep.
func pass() {
	switch k := rand.IntN(16); {
	case k == 0:
		tick := time.NewTimer(time.Duration(rand.IntN(100)) * time.Microsecond)
		<-tick.C
	case k < 8:
		for range k {
			runtime.Gosched()
		}
	}
}

var policies = []wait.Policy{
	{Spin: 0, Yield: 0, PerCPU: 1},
	{Spin: 1, Yield: 2},
	{Spin: 40, Yield: 3, PerCPU: 1},
	wait.ForGoroutine(),
	{Spin: 2, Yield: 10, OS: true, PerCPU: 2, Ranks: 4},
}

func overPolicies(t *testing.T, test func(t *testing.T, pol wait.Policy)) {
	for _, procs := range []int{1, 2, 4} {
		for i, pol := range policies {
			t.Run(fmt.Sprintf("P=%d/%d", procs, i), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				test(t, pol)
			})
		}
	}
}

// Goroutines that wait and others that send, in all ways in which they interleave:
// nobody waits for ever, though no tick of the service helps.
func TestNoWakeUpIsLost(t *testing.T) {
	rounds := 150
	if testing.Short() {
		rounds = 30
	}
	overPolicies(t, func(t *testing.T, pol wait.Policy) {
		f := newFake(4, pol)
		var wg sync.WaitGroup
		for _, c := range f.calls {
			order := make(chan int)
			wg.Go(func() {
				defer close(order)
				for range rounds {
					need := 1 + rand.IntN(3)
					order <- need
					pass()
					if !c.wait(need) {
						t.Error("it has given up")
					}
				}
			})
			wg.Go(func() {
				for need := range order {
					for range need {
						pass()
						c.send(rand.IntN(2) == 0)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		f.soon(t, "events", done)
		f.stop(t)
	})
}

// Calls that are given up end, also if leadership has just come to them.
func TestGivenUp(t *testing.T) {
	overPolicies(t, func(t *testing.T, pol wait.Policy) {
		f := newFake(3, pol)
		var wg sync.WaitGroup
		for _, c := range f.calls {
			again := make(chan struct{})
			wg.Go(func() {
				defer close(again)
				for range 40 {
					again <- struct{}{}
					c.wait(1)
				}
			})
			wg.Go(func() {
				for range again {
					pass()
					if rand.IntN(2) == 0 {
						c.end()
					} else {
						c.send(rand.IntN(2) == 0)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		f.soon(t, "calls", done)
		f.stop(t)
	})
}

// Who waits is asked whatever it does meanwhile, and waits on.
func TestAsked(t *testing.T) {
	overPolicies(t, func(t *testing.T, pol wait.Policy) {
		f := newFake(2, pol)
		var wg sync.WaitGroup
		for _, c := range f.calls {
			wg.Go(func() { c.wait(2) })
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		for range 50 {
			c := f.calls[rand.IntN(2)]
			pass()
			f.mu.Lock()
			f.Ask(&c.Waiter)
			f.mu.Unlock()
			answered := make(chan struct{})
			go func() { <-c.answered; close(answered) }()
			f.soon(t, "answer", answered)
		}
		for _, c := range f.calls {
			c.send(false)
			c.send(true)
		}
		f.soon(t, "events", done)
		f.stop(t)
	})
}

// Nobody waits, but for a wake-up: the service goroutine falls asleep for the
// process, and looks when it is woken.
func TestQuiet(t *testing.T) {
	f := newFake(1, policies[0])
	c := f.calls[0]
	asleep := func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.Armed()
	}
	f.AskService()
	for !asleep() {
		runtime.Gosched()
	}
	for _, memory := range []bool{false, true} {
		c.send(memory)
		for c.came.Load()+c.word.Load() != 0 || !asleep() {
			runtime.Gosched()
		}
	}
	f.mu.Lock()
	if c.Hits != 2 || f.waits != 0 {
		t.Errorf("%d hits, %s", c.Hits, f.state())
	}
	f.mu.Unlock()
	f.stopAsleep(t)
}

// stopAsleep is stop of a process that nobody waits in.
func (f *fake) stopAsleep(t *testing.T) {
	done := make(chan struct{})
	go func() { f.stop(t); close(done) }()
	f.soon(t, "stop", done)
}

// Leadership goes from hand to hand: one polls, the others are parked, and one who
// rests says so.
func TestStates(t *testing.T) {
	f := newFake(2, wait.Policy{Spin: 1 << 30, PerCPU: 1})
	done := make([]chan struct{}, 2)
	for i, c := range f.calls {
		done[i] = make(chan struct{})
		go func() { c.wait(1); close(done[i]) }()
		for over := false; !over; { // the first leads, the second follows
			f.mu.Lock()
			over = f.Led() && f.waits == i+1 && f.Followed() == (i == 1)
			f.mu.Unlock()
			runtime.Gosched()
		}
	}
	if f.calls[0].send(true); true {
		f.soon(t, "the first", done[0])
	}
	for over := false; !over; {
		f.mu.Lock()
		over = f.Led() && !f.Followed()
		f.mu.Unlock()
		runtime.Gosched()
	}
	f.calls[1].send(false)
	f.soon(t, "the second", done[1])
	f.mu.Lock()
	turns := f.Turns
	f.Lead()
	if !f.Looked(turns) {
		t.Error("nothing has happened, but it must not rest")
	}
	f.Busy()
	if f.Looked(turns) {
		t.Error("something has happened, and it may rest")
	}
	f.Leave()
	if f.Led() || f.Armed() {
		t.Errorf("it has left: %s", f.state())
	}
	f.mu.Unlock()
	f.stopAsleep(t)
}

// A process at work of which no operation polls takes what comes by a transport and in
// memory, whatever its operations do.
func TestAttend(t *testing.T) {
	f := newFake(1, policies[0])
	c := f.calls[0]
	f.mu.Lock()
	for round := range 3 * attendDear {
		c.send(round%2 == 0)
		for op := 1; c.Hits == round; op++ {
			if op > attendEvery {
				t.Fatalf("round %d: not seen in %d operations", round, op-1)
			}
			f.Busy()
			f.Lead()
			turns := f.Turns
			f.Attend()
			if polled := f.Turns != turns; f.Looked(turns) {
				f.Rest()
			} else if f.Leave(); !polled && !f.relaxDue() {
				t.Fatal("who has only looked may not rest")
			}
		}
	}
	if f.thorough == 0 {
		t.Error("what is dear to look at was passed over all the time")
	}
	f.mu.Unlock()
	f.stopAsleep(t)
}

// lateHook waits for a word whose writer has not seen the mark of sleep, and whose
// store is not seen in the look that follows the mark, but in all later ones.
type lateHook struct{ asleep, fresh, moved bool }

func (h *lateHook) Step() bool {
	was := h.moved
	h.moved, h.fresh = was || h.asleep && !h.fresh, false
	return h.moved && !was
}

func (h *lateHook) PrepareSleep() (late bool) {
	late = !h.asleep
	h.asleep, h.fresh = true, h.fresh || late
	return late
}

func (h *lateHook) EndSleep() { h.asleep = false }

// What a writer has stored without seeing that the process sleeps is found by the
// second look.
func TestSecondLook(t *testing.T) {
	f := newFake(1, policies[0])
	var h lateHook
	f.mu.Lock()
	f.AddHook(&h)
	f.mu.Unlock()
	f.AskService()
	moved := make(chan struct{})
	go func() {
		defer close(moved)
		for over := false; !over; runtime.Gosched() {
			f.mu.Lock()
			over = h.moved
			f.mu.Unlock()
		}
	}()
	f.soon(t, "second look", moved)
	f.mu.Lock()
	f.DropHook(&h)
	if h.asleep || len(f.Hooks()) != 1 {
		t.Errorf("a hook that is taken off sleeps: %v, %d are left", h.asleep, len(f.Hooks()))
	}
	f.mu.Unlock()
	f.stopAsleep(t)
}
