// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// blocked is what calls gave that were begun over the outputs of a change.
type blocked struct {
	sync.WaitGroup
	mu   sync.Mutex
	gave map[string]error
}

func (b *blocked) begin(name string, f func() error) {
	b.Go(func() {
		err := f()
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.gave == nil {
			b.gave = map[string]error{}
		}
		b.gave[name] = err
	})
}

// barrier blocks all members but the last, which waits for a message.
func barrier(c *mpi.Comm, err error) error {
	if err != nil {
		return err
	}
	if c.Rank() < c.Size()-1 {
		return c.Barrier()
	}
	_, err = mpi.Recv(c, []int{0}, mpi.AnySource, 1)
	return err
}

// overOutputs blocks in communicators over the outputs of a change, and in making one:
// the first member of that does not call.
func overOutputs(t *mpitest.T, s *sessions.Session, b *blocked, input string) {
	ctx := t.Context()
	for _, name := range []string{"app://joining", "app://leaving", "app://result", "app://union"} {
		g, err := s.Group(name)
		if err != nil {
			t.Fatal(err)
		}
		if g.Rank() == mpi.Undefined {
			continue
		}
		set, err := s.Comm(name)
		if err != nil {
			t.Fatal(err)
		}
		d, err := set.Dup()
		if err != nil {
			t.Fatal(err)
		}
		b.begin(name, func() error { return barrier(set, nil) })
		b.begin("a group of "+name, func() error { return barrier(mpi.CommFromGroup(g.WithContext(ctx), "made of "+name)) })
		if g.Rank() > 0 {
			b.begin("a communicator of "+name, func() error { return barrier(mpi.CommFromGroup(g.WithContext(ctx), "not made of "+name)) })
		}
		b.begin("a copy of "+name, func() error {
			r := mpi.Irecv(d, []int{0}, mpi.AnySource, 1)
			d.Free()
			_, err := r.Wait()
			return err
		})
	}
	var all []mpi.Group
	for _, name := range []string{input, "app://joining"} {
		g, err := s.Group(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	union := all[0].Union(all[1])
	b.begin("a union of groups", func() error { return barrier(mpi.CommFromGroup(union, "all")) })
	if all[0].Rank() == mpi.Undefined {
		slices.Reverse(all)
	}
	c, err := mpi.IntercommCreateFromGroups(all[0], all[1], "sides")
	if err != nil {
		t.Fatal(err)
	}
	b.begin("an intercommunicator that was merged", func() error { return barrier(c.IntercommMerge(c.Size() == 2)) })
}

// TestUndone: when a change is rolled back, by a Cancel or, once it was accepted, by a
// death, whoever blocks in a communicator over its outputs, or in making one, gets an
// error which says so.
func TestUndone(t *testing.T) {
	run := func(t *testing.T, accepted bool, opts []mpitest.Option) {
		nothingLeft(t)
		var begun sync.WaitGroup
		begun.Add(6)
		united := make(chan struct{})
		mpitest.Run(t, 4, func(t *mpitest.T, world *mpi.Comm) { undone(t, world, accepted, united, &begun) }, opts...)
	}
	transports(t, func(t *testing.T, transport string) { run(t, false, over(transport)) })
	t.Run("accepted", func(t *testing.T) { run(t, true, over("inproc")) })
}

func undone(t *mpitest.T, world *mpi.Comm, accepted bool, united chan struct{}, begun *sync.WaitGroup) {
	ctx := t.Context()
	s, err := sessions.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c, err := sessions.Joined(ctx)
	if err != nil {
		t.Fatal(err)
	}
	newcomer := c != nil
	var w *sessions.Watcher
	var op *sessions.Operation
	if !newcomer {
		w, err = sessions.Watch(ctx, "gompi://main", sessions.Options{Hold: !accepted})
		if err != nil {
			t.Fatal(err)
		}
		if err := world.Barrier(); err != nil {
			t.Fatal(err)
		}
		if world.Rank() == 0 {
			r := sessions.Request{Kind: sessions.Replace, In: []string{"gompi://main"}, Add: []int{2}, Sub: 2, Names: []string{"leaving", "joining", "result"}}
			if op, err = sessions.Submit(ctx, r); err != nil {
				t.Fatal(err)
			}
		}
		if accepted {
			for i := 0; c == nil; i++ {
				if c, err = w.Check(i); err != nil {
					t.Fatal(err)
				}
			}
		} else if c, err = w.Coming(ctx); err != nil {
			t.Fatal(err)
		}
	}
	var b blocked
	inter, err := c.Inter(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b.begin("Inter", func() error { return barrier(inter, nil) })
	if op != nil {
		if _, err := s.Combine(sessions.Algebra{Do: sessions.Union, In: []string{"app://joining", "app://leaving"}, Names: []string{"union"}}); err != nil {
			t.Fatal(err)
		}
		close(united)
	}
	<-united
	overOutputs(t, s, &b, c.Input)
	begun.Done()
	switch {
	case accepted && newcomer && world.Rank() == 1:
		begun.Wait()
		t.Kill(-1)
	case op != nil && !accepted:
		begun.Wait()
		if err := op.Cancel(ctx); err != nil {
			t.Error(err)
		}
	}
	b.Wait()
	for name, err := range b.gave {
		var e *mpi.Error
		died := accepted && name != "app://leaving" && errors.Is(err, mpi.ErrProcFailed)
		if !errors.As(err, &e) || !errors.Is(err, sessions.ErrRolledBack) && !died {
			t.Error(fmt.Sprintf("%v, in %s", err, name))
		}
	}
	for !inter.Revoked() {
		runtime.Gosched()
	}
	if newcomer || accepted {
		if _, err := c.Commit(ctx); !errors.Is(err, sessions.ErrRolledBack) {
			t.Error(fmt.Sprintf("committed: %v", err))
		}
	}
	if !newcomer {
		name := "app://result"
		if c.Role == sessions.Leaving {
			name = "app://leaving"
		}
		// Who has only been told by the others may not know yet.
		gone, err := s.Comm(name)
		if err = barrier(gone, err); !errors.Is(err, mpi.ErrSetGone) && !errors.Is(err, sessions.ErrRolledBack) {
			t.Error(fmt.Sprintf("a communicator of what is gone: %v", err))
		}
		if err := world.Barrier(); err != nil {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestQueryOfTheUndone: who asks for the changes of a set that vanishes with a change is
// told so, from the next call on.
func TestQueryOfTheUndone(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		nothingLeft(t)
		mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
			ctx := t.Context()
			if c, err := sessions.Joined(ctx); err != nil || c != nil {
				if _, err = c.Commit(ctx); !errors.Is(err, sessions.ErrRolledBack) {
					t.Error(err)
				}
				return
			}
			s, err := sessions.Open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			names, err := s.Split("mpi://WORLD", []int{1, 1})
			if err == nil {
				names, err = sharedNames(world, names)
			}
			var w *sessions.Watcher
			if err == nil {
				// Nobody releases it: so nobody is handed what is withdrawn.
				w, err = sessions.Watch(ctx, names[world.Rank()], sessions.Options{Hold: true})
			}
			if err == nil {
				defer w.Close()
				err = world.Barrier()
			}
			if err == nil && world.Rank() == 0 {
				err = asksUndone(t, w, names[1])
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := world.Barrier(); err != nil {
				t.Error(err)
			}
		}, over(transport)...)
	})
}

// asksUndone asks for the outputs of changes of a set, which it then withdraws.
func asksUndone(t *mpitest.T, w *sessions.Watcher, set string) error {
	ctx := t.Context()
	for _, name := range []string{"app://coming", "app://grown"} {
		op, err := sessions.Submit(ctx, sessions.Request{Kind: sessions.Grow, In: []string{set}, Add: []int{1}, Names: []string{"coming", "grown"}})
		if err == nil {
			_, err = op.Granted(ctx)
		}
		if err != nil {
			return err
		}
		if c, err := w.Query(ctx, "mpi://SELF", name); c != nil || err != nil {
			return fmt.Errorf("of %s: %v, %w", name, c, err)
		}
		if err := op.Cancel(ctx); err != nil {
			return err
		}
		op.Free()
		for err == nil {
			_, err = w.Query(ctx, "mpi://SELF", name)
			runtime.Gosched()
		}
		_, again := w.Query(ctx, "mpi://SELF", name)
		if !errors.Is(err, sessions.ErrSetGone) || !errors.Is(again, sessions.ErrSetGone) {
			t.Errorf("of %s, which is gone: %v, then %v", name, err, again)
		}
	}
	return nil
}
