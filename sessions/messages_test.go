// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/core"
	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// said counts what the processes of a job say to their agents.
type said struct {
	mu   sync.Mutex
	kind map[string]int
}

func (s *said) say(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kind[what]++
}

// begin forgets what was said so far.
func (s *said) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kind = map[string]int{}
}

func (s *said) all() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.kind)
}

// overheard is a connection of which all is counted but how it ends.
type overheard struct {
	core.Control
	said *said
}

func (o overheard) Ask(ctx context.Context, m, body protocol.Message) error {
	o.said.say(fmt.Sprintf("%T", m))
	return o.Control.Ask(ctx, m, body)
}

func (o overheard) AskFiles(ctx context.Context, m, body protocol.Message) ([protocol.FrameFDs]int, error) {
	o.said.say(fmt.Sprintf("%T", m))
	return o.Control.AskFiles(ctx, m, body)
}

func (o overheard) Tell(m protocol.Message) error {
	o.said.say(fmt.Sprintf("%T", m))
	return o.Control.Tell(m)
}

func (o overheard) Watch(m wire.Members) error {
	o.said.say("Watch")
	return o.Control.Watch(m)
}

func (o overheard) LeaveCommon(x wire.ArenaRange) error {
	o.said.say("LeaveCommon")
	return o.Control.LeaveCommon(x)
}

// TestNobodyAsks: members are handed a change, commit it and go on with the Result's
// page without a message; one tells that the first was handed it, one that the last
// has voted.
func TestNobodyAsks(t *testing.T) {
	const n = 5
	for _, change := range []sessions.Request{
		{Kind: sessions.Shrink, Ranks: []int{1}},
		{Kind: sessions.Grow, Add: []int{2}},
		{Kind: sessions.Replace, Ranks: []int{0, 3}, Add: []int{1}},
	} {
		t.Run(change.Kind.String(), func(t *testing.T) {
			s := &said{kind: map[string]int{}}
			var all sync.WaitGroup
			all.Add(n)
			var heard map[string]int
			took := sync.OnceFunc(func() { heard = s.all() })
			mpitest.Run(t, n, func(t *mpitest.T, world *mpi.Comm) {
				ctx := t.Context()
				c, err := sessions.Joined(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if c != nil {
					if _, err := c.Commit(ctx); err != nil {
						t.Fatal(err)
					}
					return
				}
				w, err := sessions.Watch(ctx, "mpi://WORLD", sessions.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if world.Rank() == 0 {
					r := change
					r.In = []string{"mpi://WORLD"}
					op, err := sessions.Submit(ctx, r)
					if err != nil {
						t.Fatal(err)
					}
					for op.State() < sessions.Ready {
						if _, err := op.Granted(ctx); err != nil {
							t.Fatal(err)
						}
					}
				}
				if err := world.Barrier(); err != nil {
					t.Fatal(err)
				}
				if world.Rank() == 0 {
					s.begin()
				}
				if err := world.Barrier(); err != nil {
					t.Fatal(err)
				}
				i := 0
				for ; c == nil; i++ {
					if c, err = w.Check(i); err != nil {
						t.Fatal(err)
					}
				}
				_, err = c.Commit(ctx)
				if c.Role == sessions.Staying {
					if err != nil {
						t.Fatal(err)
					}
					if next, err := w.Check(i); next != nil || err != nil {
						t.Error(next, err)
					}
				}
				all.Done()
				all.Wait()
				took() // before anybody leaves
			}, testjob.Overheard(func(c core.Control) core.Control { return overheard{c, s} }))
			t.Log(heard)
			// Once a process: it holds the set no more that Watch has looked up, and
			// wants to know of the ends of newcomers. A newcomer wants to know
			// that of the members, too, and its world is an output.
			news := 0
			if len(change.Add) > 0 {
				news = change.Add[0]
			}
			for what, most := range map[string]int{"*protocol.Release": n, "Watch": n + 2*max(news, 1), "*protocol.StatusWord": 2, "*protocol.Undecided": news} {
				if heard[what] > most {
					t.Errorf("%d of %s, at most %d are needed", heard[what], what, most)
				}
				delete(heard, what)
			}
			delete(heard, "*protocol.Op")    // of newcomers: their votes
			delete(heard, "*protocol.Await") // likewise, how that ends
			if len(heard) > 0 {
				t.Errorf("%v", heard)
			}
		})
	}
}
