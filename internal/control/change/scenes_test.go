// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/internal/base/wire"
)

// watchedWorld is a world of n processes, all of which watch their set, in which there
// is place for more than they ask for.
func watchedWorld(t *testing.T, n int) *world {
	w := newWorld(t, 1, n, 100)
	for _, p := range w.sets[w.main].members {
		w.b.Watch(w.main, p, false)
	}
	return w
}

// submit is a request that is taken.
func (w *world) submit(r Request) uint32 {
	w.t.Helper()
	n, err := w.b.Submit(w.now, r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.flush()
	return n
}

// A queued operation waits for places, and gets them when a process is gone.
func TestRoom(t *testing.T) {
	w := newWorld(t, 1, 3, 4)
	two := w.Define(w.sets[w.main].members[:2])
	for _, p := range w.sets[two].members {
		w.b.Watch(two, p, false)
	}
	n, err := w.b.Submit(0, Request{Kind: Grow, In: []uint32{two}, Join: []int{2}})
	if err != nil {
		t.Fatal(err)
	}
	w.flush()
	if _, err := w.b.Submit(0, Request{Kind: Grow, In: []uint32{two}, Join: []int{1}, NoQueue: true}); err != ErrBusy {
		t.Errorf("without a queue: %v", err)
	}
	if _, err := w.b.Submit(0, Request{Kind: Grow, In: []uint32{two}, Join: []int{5}}); !errors.Is(err, ErrTooMany) || !strings.HasSuffix(err.Error(), "5 processes, where there can be 4") {
		t.Errorf("five where four can be: %v", err)
	}
	w.died(wire.ProcID{Job: 1, Serial: 3})
	if s, err := w.b.State(n); s != Granted || err != nil {
		t.Errorf("%v, %v", s, err)
	}
}

// Where there is no place for all, a request with bounds gets as many as it may have.
func TestBounds(t *testing.T) {
	for what, c := range map[string]struct {
		r    Request
		want int // newcomers; 0: it waits, -1: it is refused
	}{
		"none":              {Request{Kind: Grow, Join: []int{5}}, 0},
		"as many as fit":    {Request{Kind: Grow, Join: []int{6}, Min: 4}, 3},
		"all":               {Request{Kind: Grow, Join: []int{2}, Min: 4}, 2},
		"at most":           {Request{Kind: Grow, Join: []int{6}, Max: 5}, 2},
		"preferred":         {Request{Kind: Grow, Join: []int{6}, Max: 9, Pref: 4}, 1},
		"not preferred":     {Request{Kind: Grow, Join: []int{6}, Max: 9, Pref: 7}, 3},
		"all rather":        {Request{Kind: Grow, Join: []int{3}, Max: 9, Pref: 4}, 3},
		"sizes":             {Request{Kind: Grow, Join: []int{5}, Sizes: []int{2, 4, 5, 8}}, 2},
		"too few":           {Request{Kind: Grow, Join: []int{5}, Min: 7}, 0},
		"never":             {Request{Kind: Grow, Join: []int{6}, Min: 9}, -1},
		"no size":           {Request{Kind: Grow, Join: []int{6}, Sizes: []int{3, 13}}, -1},
		"too many there":    {Request{Kind: Grow, Join: []int{6}, Max: 3}, -1},
		"sets of newcomers": {Request{Kind: Add, Join: []int{5}, Min: 3}, 3},
		"too small a set":   {Request{Kind: Add, Join: []int{5}, Min: 4}, 0},
		"to a size":         {Request{Kind: Replace, To: 8, Min: 4}, 3},
		"to few":            {Request{Kind: Replace, To: 8, Min: 7}, 0},
		"in place of one":   {Request{Kind: Replace, Join: []int{4}, Leave: 1, Min: 5}, 3},
		"outside":           {Request{Kind: Replace, To: 8, Max: 7}, -1},
		"crossed":           {Request{Kind: Grow, Join: []int{1}, Min: 5, Max: 4}, -1},
		"preferred alone":   {Request{Kind: Grow, Join: []int{1}, Pref: 4}, -1},
		"of who leaves":     {Request{Kind: Shrink, Leave: 1, Min: 1}, -1},
		"of a part":         {Request{Kind: Multi, Parts: []Request{{Kind: Grow, In: []uint32{0}, Join: []int{1}, Min: 1}}}, -1},
	} {
		w := newWorld(t, 1, 5, 8) // three of the eight: main; two more, of which nobody hears
		members := w.sets[w.main].members
		w.main = w.Define(members[:3])
		for _, p := range members[:3] {
			w.b.Watch(w.main, p, false)
		}
		if c.r.Kind != Multi {
			c.r.In = []uint32{0}
		}
		n, err := w.b.Submit(0, c.r)
		s := Refused
		if err == nil {
			w.flush()
			s = w.states[n]
		}
		switch {
		case c.want < 0 && s != Refused, c.want == 0 && s != 0:
			t.Errorf("%s: %v, %v", what, s, err)
		case c.want > 0 && (s != Granted || len(w.b.ops[n].parts[0].join[0]) != c.want):
			t.Errorf("%s: %v, %v, want %d newcomers", what, s, err, c.want)
		}
	}
}

// Of waiting requests for a size only the latest stays; others queue, and a commit
// refuses those that name the set by its old name.
func TestQueue(t *testing.T) {
	w := watchedWorld(t, 3)
	first := w.main
	now := w.submit(Request{Kind: Shrink, In: []uint32{0}, Leave: 1})
	to5 := w.submit(Request{Kind: Replace, In: []uint32{0}, To: 5})
	more := w.submit(Request{Kind: Grow, In: []uint32{0}, Join: []int{1}})
	named := w.submit(Request{Kind: Grow, In: []uint32{first}, Join: []int{1}})
	to7 := w.submit(Request{Kind: Replace, In: []uint32{0}, To: 7})
	five := w.submit(Request{Kind: Shrink, In: []uint32{0}, Leave: 5}) // more than there are now
	want := func(n uint32, s State) {
		t.Helper()
		if w.states[n] != s && (s != Queued || w.states[n] != 0) {
			t.Errorf("operation %d is %v, want %v", n, w.states[n], s)
		}
	}
	want(to5, Refused)
	want(more, Queued)
	want(five, Queued)
	w.swap(now, 0, IsAccepted)
	for _, p := range w.sets[first].members {
		w.vote(now, p)
	}
	w.report(now)
	want(now, Committed)
	want(named, Refused)
	want(more, Granted)
	want(to7, Queued)
	want(five, Queued)
}

// A Replace that leaves its input as it is asks nobody: it is done when it is its turn,
// and its Result is the input. With a dead member there is something to do.
func TestNothingToDo(t *testing.T) {
	w := watchedWorld(t, 3)
	first := w.main
	for _, r := range []Request{
		{Kind: Replace, In: []uint32{0}, To: 3, NoQueue: true},
		{Kind: Replace, In: []uint32{first}},
		{Kind: Multi, Parts: []Request{{Kind: Replace, In: []uint32{first}}}},
	} {
		n, err := w.b.Submit(w.now, r)
		if err != nil {
			t.Fatal(err)
		}
		var told []State
		w.b.Flush(func(e *Effect) {
			switch e.Do {
			case StateChanged:
				told = append(told, e.State)
				if out := e.Outputs; len(out) != 1 || out[0].Result != first || out[0].Leaving != 0 || len(out[0].Joining) > 0 {
					t.Errorf("%+v makes %+v", r, out)
				}
			case Drop:
				w.Drop(e.Sets[0])
			default:
				t.Errorf("%+v does %+v", r, e)
			}
		})
		if _, err := w.b.State(n); !slices.Equal(told, []State{Done}) || err != ErrNoOp {
			t.Errorf("%+v comes to %v, %v", r, told, err)
		}
	}
	if w.sets[first].holds != 1 {
		t.Errorf("the set has %d holds", w.sets[first].holds)
	}
	w.submit(Request{Kind: Shrink, In: []uint32{0}, Leave: 1})
	if n := w.submit(Request{Kind: Replace, In: []uint32{0}, To: 3}); w.states[n] == Done {
		t.Error("it did not wait for its turn")
	}
	w = watchedWorld(t, 3)
	w.died(w.sets[w.main].members[1])
	if n := w.submit(Request{Kind: Replace, In: []uint32{0}, To: 2}); w.states[n] != Ready {
		t.Errorf("with a dead member it is %v", w.states[n])
	}
}

// Latest is the set with which who asks has come, or then goes; while that is not
// decided who asks for a change of it waits.
func TestLatest(t *testing.T) {
	w := watchedWorld(t, 3)
	m := w.sets[w.main].members
	ask := func(p wire.ProcID) (uint32, error) {
		n, err := w.b.Submit(w.now, Request{Kind: Grow, In: []uint32{Latest}, By: p, Join: []int{1}})
		w.flush()
		return n, err
	}
	if _, err := ask(m[2]); err != ErrNoSet {
		t.Errorf("who came by no change: %v", err)
	}
	grow := w.submit(Request{Kind: Grow, In: []uint32{0}, Join: []int{1}})
	joining := w.b.ops[grow].parts[0].outputs.Joining[0]
	comes := w.sets[joining].members[0]
	n, err := ask(comes)
	if err != nil || w.b.ops[n].state != Queued || w.b.resolve(w.b.ops[n], Latest) != joining {
		t.Fatalf("who comes: %d, %v", n, err)
	}
	w.died(m[0]) // the change is rolled back
	if w.swap(grow, 0, IsRolledBack); w.states[n] != Refused {
		t.Errorf("with its set rolled back it is %v", w.states[n])
	}
	shrink := w.submit(Request{Kind: Shrink, In: []uint32{0}, Leave: 1})
	if n, err = ask(m[2]); err != nil || w.b.ops[n].state != Queued || w.b.resolve(w.b.ops[n], Latest) != w.b.ops[shrink].parts[0].outputs.Leaving {
		t.Errorf("who goes: %d, %v", n, err)
	}
}

// Who leaves by a change that is not decided makes a later one wait that removes as
// many, and is none of those to be removed when it is decided.
func TestTheLastLeaveOnce(t *testing.T) {
	w := watchedWorld(t, 5)
	var ops []uint32
	for range 2 {
		ops = append(ops, w.submit(Request{Kind: Sub, In: []uint32{w.main}, Leave: 2}))
	}
	if s, _ := w.b.State(ops[1]); s != Queued {
		t.Fatalf("the second is %v", s)
	}
	w.swap(ops[0], 0, IsAccepted)
	for _, p := range w.sets[w.main].members {
		w.vote(ops[0], p)
	}
	w.report(ops[0])
	if s, _ := w.b.State(ops[1]); s != Ready {
		t.Fatalf("the second is %v when the first is committed", s)
	}
	var leave []uint32
	for _, p := range w.b.ops[ops[1]].parts[0].leave {
		leave = append(leave, p.Serial)
	}
	if !slices.Equal(leave, []uint32{2, 3}) {
		t.Errorf("leave: %v", leave)
	}
}

// Who watches when a change was granted already holds it back like all others.
func TestLateHolder(t *testing.T) {
	w := newWorld(t, 1, 3, 100)
	m := w.sets[w.main].members
	w.b.Watch(w.main, m[0], true)
	n, err := w.b.Submit(w.now, Request{Kind: Shrink, In: []uint32{0}, Leave: 1})
	if err != nil {
		t.Fatal(err)
	}
	fixed := func() (fixed bool) {
		w.b.Flush(func(e *Effect) { fixed = fixed || e.Do == Agree })
		return fixed
	}
	steps := []func(){
		func() { w.b.Release(n, m[0]) },
		func() { w.b.Watch(w.main, m[1], true) },
		func() { w.b.Watch(w.main, m[2], true) },
		func() { w.b.Release(n, m[2]) },
		func() { w.b.Release(n, m[1]) },
	}
	for i, step := range steps {
		if step(); fixed() != (i == len(steps)-1) {
			t.Fatalf("after step %d of %d members are handed it, or are not at the end", i, len(steps))
		}
	}
}

// A deadline says for whom it has waited, and stands still while what holds a change
// back moves.
func TestLate(t *testing.T) {
	w := newWorld(t, 1, 3, 100)
	first := w.main
	m := w.sets[first].members
	w.b.Watch(first, m[0], true)
	var why string
	begin := func(r Request) uint32 {
		t.Helper()
		r.In, r.ToReady, r.ToAccept = []uint32{0}, 10*time.Second, 10*time.Second
		n, err := w.b.Submit(w.now, r)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	run := func() (asked Action) {
		w.b.Flush(func(e *Effect) {
			if e.Do == Withdraw || e.Do == CheckProgress {
				asked = e.Do
			}
			if e.Do == StateChanged && e.Why != nil {
				why = e.Why.Error()
			}
		})
		return asked
	}
	n := begin(Request{Kind: Grow, Join: []int{5}})
	run()
	w.b.Launched(w.now, n, nil)
	w.b.Tick(11 * time.Second)
	run()
	if want := "the deadline is over: it waited for [1/4 1/5 1/6 1/7 1/8] to join"; why != want {
		t.Errorf("%q, want %q", why, want)
	}

	n = begin(Request{Kind: Shrink, Leave: 1})
	run()
	at := func(sec int, want Action) {
		t.Helper()
		w.b.Tick(time.Duration(sec) * time.Second)
		if got := run(); got != want {
			t.Errorf("after %d s: %d, want %d", sec, got, want)
		}
	}
	at(9, 0)
	at(10, CheckProgress)
	w.b.Progress(11*time.Second, n)
	at(20, 0)
	at(21, CheckProgress)
	w.b.Release(n, m[0])
	at(23, Withdraw)
	w.b.Decided(24*time.Second, n, IsRolledBack)
	run()
	if want := "the deadline is over: it waited for [1/2 1/3] to watch the set"; why != want {
		t.Errorf("%q, want %q", why, want)
	}
}

// A leaver that closes its watch before the decision refuses nobody who waits; if it
// stays after all it does.
func TestLeaverCloses(t *testing.T) {
	for _, v := range []Decision{IsCommitted, IsRolledBack} {
		w := watchedWorld(t, 3)
		first := w.main
		now := w.submit(Request{Kind: Shrink, In: []uint32{0}, Leave: 1})
		next := w.submit(Request{Kind: Grow, In: []uint32{0}, Join: []int{1}})
		w.swap(now, 0, IsAccepted)
		w.report(now)
		w.b.Unwatch(w.now, first, w.sets[first].members[2])
		w.flush()
		later := w.submit(Request{Kind: Grow, In: []uint32{0}, Join: []int{1}})
		want := Granted
		if v == IsRolledBack {
			want = Refused
			w.died(w.sets[first].members[0])
		}
		w.words[now].v = v
		w.report(now)
		if w.states[next] != want || v == IsRolledBack && w.states[later] != want {
			t.Errorf("with verdict %d those that wait are %v and %v", v, w.states[next], w.states[later])
		}
	}
}

// A member that leaves in order without ever having watched is in no Result: what was
// granted with it is rolled back, and the next change leaves it out.
func TestUnwatchingMemberLeaves(t *testing.T) {
	for _, r := range []Request{{Kind: Shrink, Leave: 1}, {Kind: Grow, Join: []int{1}}} {
		w := newWorld(t, 1, 3, 100)
		m := w.sets[w.main].members
		w.b.Watch(w.main, m[1], false)
		w.b.Watch(w.main, m[2], false)
		r.In = []uint32{0}
		first := w.submit(r)
		w.left(m[0])
		w.swap(first, 0, IsRolledBack)
		w.report(first)
		if s := w.states[first]; s != RolledBack {
			t.Errorf("%v is %v", r.Kind, s)
		}
		next := w.submit(r)
		if got := w.b.ops[next].parts[0].rest; slices.Contains(got, m[0]) {
			t.Errorf("%v of %v", r.Kind, got)
		}
	}
}

// So many operations wait, and no more.
func TestFullQueue(t *testing.T) {
	w := watchedWorld(t, 2)
	w.submit(Request{Kind: Shrink, In: []uint32{0}, Leave: 1})
	grow := Request{Kind: Grow, In: []uint32{0}, Join: []int{1}}
	for range maxQueue {
		if _, err := w.b.Submit(w.now, grow); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.b.Submit(w.now, grow); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "1024") {
		t.Errorf("one more: %v", err)
	}
}

// A request for a size that is refused leaves the one that waits for another size as it
// was.
func TestRefusedSizeSupersedesNothing(t *testing.T) {
	for what, to := range map[string]int{"no size to have": 13, "more than there can be": 101, "more newcomers than the hosts have slots": 8} {
		w := watchedWorld(t, 2)
		w.slots = 4 // beside three
		w.submit(Request{Kind: Grow, In: []uint32{0}, Join: []int{1}})
		waits := w.submit(Request{Kind: Replace, In: []uint32{0}, To: 4})
		if _, err := w.b.Submit(w.now, Request{Kind: Replace, In: []uint32{0}, To: to}); err == nil {
			t.Errorf("%s: it is taken", what)
		}
		w.flush()
		if s := w.states[waits]; s.Over() {
			t.Errorf("%s: what has waited is %v", what, s)
		}
		next := w.submit(Request{Kind: Replace, In: []uint32{0}, To: 7})
		if s := w.states[waits]; s != Refused || next == 0 {
			t.Errorf("a later size: what has waited is %v", s)
		}
	}
}

// What is made of the outputs of a change waits for the decision of that as they do, and
// vanishes with them.
func TestDerivedSets(t *testing.T) {
	w := watchedWorld(t, 3)
	first := w.submit(Request{Kind: Shrink, In: []uint32{0}, Leave: 1})
	made := w.Define(w.sets[w.main].members[:2])
	w.b.Derived(made, first)
	for _, p := range w.sets[made].members {
		w.b.Watch(made, p, false)
	}
	next := w.submit(Request{Kind: Shrink, In: []uint32{made}, Leave: 1})
	if s, err := w.b.State(next); s != Queued || err != nil {
		t.Errorf("it is %v, %v", s, err)
	}
	if err := w.b.Cancel(w.now, first); err != nil {
		t.Fatal(err)
	}
	w.b.Decided(w.now, first, IsRolledBack)
	w.b.Flush(func(e *Effect) {
		if e.Do == StateChanged && e.Op == next && (e.State != Refused || !errors.Is(e.Why, ErrSetGone)) {
			t.Errorf("it is %v, %v", e.State, e.Why)
		}
	})
	if _, err := w.b.State(next); err == nil {
		t.Error("it goes on")
	}
}

// A set that is named twice as an input, also once as the main set, is one input.
func TestInputTwice(t *testing.T) {
	w := watchedWorld(t, 3)
	n := w.submit(Request{Kind: Sub, In: []uint32{w.main, 0, w.main}, Leave: 1})
	if in := w.b.ops[n].parts[0].in; !slices.Equal(in, []uint32{w.main}) {
		t.Errorf("its inputs are %v", in)
	}
}

// A newcomer of one change that leaves votes on another one, of a set that it is in.
func TestNewcomerLeavesElsewhere(t *testing.T) {
	w := watchedWorld(t, 2)
	first := w.submit(Request{Kind: Grow, In: []uint32{0}, Join: []int{1}})
	newcomer := w.b.ops[first].parts[0].join[0][0]
	w.procs[newcomer].joined = true
	w.b.Launched(w.now, first, nil)
	w.b.Joined(w.now, newcomer)
	w.flush()
	both := w.Define([]wire.ProcID{w.sets[w.main].members[0], newcomer})
	for _, p := range w.sets[both].members {
		w.b.Watch(both, p, false)
	}
	next := w.submit(Request{Kind: Add, In: []uint32{both}, Join: []int{1}})
	last := w.b.ops[next].parts[0].join[0][0]
	w.procs[last].joined = true
	w.b.Launched(w.now, next, nil)
	w.b.Joined(w.now, last)
	w.flush()
	w.b.Decided(w.now, next, IsAccepted)
	w.procs[newcomer].over = true
	w.b.Left(w.now, newcomer)
	voted := false
	w.b.Flush(func(e *Effect) { voted = voted || e.Do == Vote && e.Op == next && slices.Contains(e.Procs, newcomer) })
	if !voted {
		t.Error("nobody votes for it")
	}
}
