// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// operation is a change of a job of four, for which rank 1 asks, and the sizes of the
// sets that each of its parts makes, by position.
type operation struct {
	name    string
	request sessions.Request
	halves  bool // the ranks watch app://left and app://right, which have two each
	sizes   [][]int
}

var toMain = []string{"gompi://main"}

var operations = []operation{
	{"grow", sessions.Request{Kind: sessions.Grow, In: toMain, Add: []int{2}, Names: []string{"some", "all"}}, false, [][]int{{2, 6}}},
	{"shrink", sessions.Request{Kind: sessions.Shrink, In: toMain, Sub: 2, Names: []string{"", "rest"}}, false, [][]int{{2, 2}}},
	{"shrink-ranks", sessions.Request{Kind: sessions.Shrink, In: []string{"MPI://World"}, Ranks: []int{0, 2}}, false, [][]int{{2, 2}}},
	{"replace", sessions.Request{Kind: sessions.Replace, In: toMain, Add: []int{1}, Ranks: []int{0}, Names: []string{"old", "new", "both"}}, false, [][]int{{1, 1, 4}}},
	{"replace-up", sessions.Request{Kind: sessions.Replace, In: toMain, Size: 5}, false, [][]int{{1, 5}}},
	{"replace-down", sessions.Request{Kind: sessions.Replace, In: toMain, Size: 3}, false, [][]int{{1, 3}}},
	{"add", sessions.Request{Kind: sessions.Add, In: toMain, Add: []int{1, 2}}, false, [][]int{{1, 2}}},
	{"add-nothing", sessions.Request{Kind: sessions.Add, Add: []int{2}}, false, [][]int{{2}}},
	{"sub", sessions.Request{Kind: sessions.Sub, In: toMain, Sub: 1}, false, [][]int{{1}}},
	{"multi", sessions.Request{Kind: sessions.Multi, Parts: []sessions.Request{
		{Kind: sessions.Grow, In: []string{"app://left"}, Add: []int{1}},
		{Kind: sessions.Replace, In: []string{"app://right"}, Add: []int{1}, Ranks: []int{1}},
	}}, true, [][]int{{1, 3}, {1, 1, 2}}},
	{"sub-halves", sessions.Request{Kind: sessions.Sub, In: []string{"app://left", "app://right"}, Sub: 1}, true, [][]int{{1}}},
}

// run is a rank of the job: it ends when the change is committed.
func (o *operation) run(ctx context.Context, world *mpi.Comm) error {
	s, err := sessions.Open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := sessions.Joined(ctx)
	if err != nil {
		return err
	}
	if c != nil {
		return o.comes(ctx, s, c)
	}
	set := "gompi://main"
	if o.halves {
		if world.Rank() == 0 {
			if _, err := s.Combine(sessions.Algebra{Do: sessions.Split, In: toMain, Sizes: []int{2, 2}, Names: []string{"left", "right"}}); err != nil {
				return err
			}
		}
		if err := world.Barrier(); err != nil {
			return err
		}
		set = []string{"app://left", "app://right"}[world.Rank()/2]
	}
	w, err := sessions.Watch(ctx, set, sessions.Options{})
	if err != nil {
		return err
	}
	// All hold what they watch, so that rank 0 may end.
	if err := world.Barrier(); err != nil {
		return err
	}
	var op *sessions.Operation
	if world.Rank() == 1 {
		if op, err = o.ask(ctx, s); err != nil {
			return err
		}
		defer op.Free()
	}
	for i := 0; c == nil && len(o.request.In)+len(o.request.Parts) > 0; i++ {
		if c, err = w.Check(i); err != nil {
			return err
		}
	}
	if c != nil {
		comm, err := c.Commit(ctx)
		if err != nil {
			return err // ErrLeaving
		}
		rank := world.Rank()
		if o.halves {
			rank %= 2
		}
		if stay, leave := c.Ranks(); c.Result != "" && comm.Rank() != slices.Index(stay, rank) || slices.Contains(leave, rank) {
			return fmt.Errorf("rank %d is rank %d of the result: %v stay, %v leave", rank, comm.Rank(), stay, leave)
		}
		if c.Role != sessions.Staying {
			return fmt.Errorf("rank %d, who stays, is %v", world.Rank(), c.Role)
		}
	}
	if op != nil {
		x, err := op.Wait(ctx)
		if err != nil || x.State != sessions.Done || x.Times.Decided == 0 {
			return fmt.Errorf("the outcome is %+v: %w", x, errors.Join(err, x.Err))
		}
	}
	return w.Close()
}

// ask asks for the change. Newcomers find words from before they look, in their own
// set and in the input.
func (o *operation) ask(ctx context.Context, s *sessions.Session) (*sessions.Operation, error) {
	say := func(set, word string) error {
		store, err := s.Store(set)
		if err != nil {
			return err
		}
		return store.Put("word", []byte(word))
	}
	for _, part := range append(o.request.Parts, o.request) {
		for _, in := range part.In {
			if err := say(in, "input"); err != nil {
				return nil, err
			}
		}
	}
	op, err := sessions.Submit(ctx, o.request)
	if err != nil {
		return nil, err
	}
	outputs, err := op.Granted(ctx)
	if err != nil || len(outputs) != len(o.sizes) {
		return nil, fmt.Errorf("outputs %+v: %w", outputs, err)
	}
	for i, part := range outputs {
		var sizes []int
		for j, name := range part.List() {
			info, err := s.Info(name)
			if err != nil || i == 0 && j < len(o.request.Names) && o.request.Names[j] != "" && name != "app://"+o.request.Names[j] {
				return nil, fmt.Errorf("output %d is %s, %+v: %w", j, name, info, err)
			}
			sizes = append(sizes, info.Size)
		}
		if !slices.Equal(sizes, o.sizes[i]) {
			return nil, fmt.Errorf("part %d has made %q of %v processes, not %v", i, part.List(), sizes, o.sizes[i])
		}
		for _, name := range part.Joining {
			if err := say(name, "newcomer"); err != nil {
				return nil, err
			}
		}
	}
	return op, nil
}

// comes is what a newcomer does.
func (o *operation) comes(ctx context.Context, s *sessions.Session, c *sessions.Change) error {
	words := map[string]string{"mpi://WORLD": "newcomer"}
	if c.Input != "" {
		words[c.Input] = "input"
	}
	for set, word := range words {
		store, err := s.Store(set)
		if err != nil {
			return err
		}
		got, err := store.Get(ctx, true, "word")
		if err != nil || string(got[0]) != word {
			return fmt.Errorf("the store of %s says %q: %w", set, got, err)
		}
	}
	comm, err := c.Commit(ctx)
	if err != nil || (comm == nil) != (c.Result == "") || c.Role != sessions.Joining {
		return fmt.Errorf("committed by who is %v, with a communicator: %v: %w", c.Role, comm != nil, err)
	}
	return nil
}

// Each operation, by ranks that are goroutines, on several hosts, and by processes. In the
// short form the operations take turns in all but the first of these ways.
func TestOperations(t *testing.T) {
	for i := range operations {
		o := &operations[i]
		for k, transport := range []string{"inproc", "shm", onHosts} {
			if k > 0 && !testlab.Takes(i+k, 3) {
				continue
			}
			t.Run(o.name+"/"+transport, func(t *testing.T) {
				nothingLeft(t)
				mpitest.Run(t, 4, func(t *mpitest.T, world *mpi.Comm) {
					if err := o.run(t.Context(), world); err != nil && !errors.Is(err, sessions.ErrLeaving) {
						t.Fatal(err)
					}
				}, over(transport)...)
			})
		}
		if !testlab.Takes(i, 3) {
			continue
		}
		t.Run(o.name+"/processes", func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			if r := mpitest.Exec(t, 4, []string{self, "rank", "operation", o.name}); r.Status != 0 || r.Stderr != "" {
				t.Errorf("status %d\n%s", r.Status, r.Stderr)
			}
		})
	}
}

func operationProgram() {
	i := slices.IndexFunc(operations, func(o operation) bool { return o.name == os.Args[3] })
	mpi.Main(operations[i].run)
}

// asks asks for a change of the main set.
func asks(t *mpitest.T, r sessions.Request) *sessions.Operation {
	t.Helper()
	r.In = toMain
	op, err := sessions.Submit(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// A change can be taken back until somebody is handed it.
func TestCancel(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
			ctx := t.Context()
			c, err := sessions.Joined(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if c != nil {
				if _, err := c.Commit(ctx); err != nil && !errors.Is(err, sessions.ErrRolledBack) {
					t.Error(err)
				}
				return
			}
			var w *sessions.Watcher
			watch := func() {
				t.Helper()
				if w, err = sessions.Watch(ctx, "gompi://main", sessions.Options{}); err != nil {
					t.Fatal(err)
				}
			}
			if world.Rank() == 0 {
				watch() // the other comes later, so nobody is handed what is cancelled
				op := asks(t, sessions.Request{Kind: sessions.Grow, Add: []int{1}})
				if err := op.Update(make([]byte, 1<<20)); !errors.Is(err, mpi.ErrArg) {
					t.Errorf("a megabyte of words about it: %v", err)
				}
				if err := op.Update([]byte("{}")); !errors.Is(err, sessions.ErrRefused) {
					t.Errorf("words about what is granted: %v", err)
				}
				if err := errors.Join(op.Cancel(ctx), op.Cancel(ctx)); err != nil {
					t.Errorf("it was seen by nobody: %v", err)
				}
				if x, err := op.Wait(ctx); err != nil || x.State != sessions.Cancelled || !errors.Is(x.Err, mpi.ErrCancelled) {
					t.Errorf("outcome %+v: %v", x, err)
				}
				op.Free()
			}
			if err := world.Barrier(); err != nil {
				t.Fatal(err)
			}
			if world.Rank() == 1 {
				watch()
			}
			if c, err := w.Check(0); c != nil || err != nil {
				t.Fatalf("handed %v of a change that was cancelled: %v", c, err)
			}
			var op *sessions.Operation
			if world.Rank() == 0 {
				op = asks(t, sessions.Request{Kind: sessions.Grow, Add: []int{1}})
				defer op.Free()
			}
			for i := 1; c == nil; i++ {
				if c, err = w.Check(i); err != nil {
					t.Fatal(err)
				}
			}
			if op != nil {
				if err := op.Cancel(ctx); !errors.Is(err, sessions.ErrTooLate) {
					t.Errorf("cancelled by who was handed it: %v", err)
				}
			}
			if comm, err := c.Commit(ctx); err != nil || comm.Size() != 3 {
				t.Errorf("committed: %v", err)
			}
		}, over(transport)...)
	})
}

// Members see a change of newcomers that prepare themselves only when these have said
// that they are ready; one vote of all is enough then.
func TestPrepare(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
			ctx := t.Context()
			s := open(t)
			defer s.Close()
			c, err := sessions.Joined(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if c != nil {
				store, err := s.Store(c.Input)
				if err != nil {
					t.Fatal(err)
				}
				if err := store.Put("there", nil); err != nil {
					t.Error(err)
				}
				if _, err := store.Get(ctx, true, "go"); err != nil {
					t.Error(err)
				}
				if err := c.Ready(); err != nil {
					t.Error(err)
				}
				if comm, err := c.Commit(ctx); err != nil || comm.Rank() != 3 || comm.Transport(0) != "" {
					t.Errorf("a newcomer's commit, reached by %q: %v", comm.Transport(0), err)
				}
				return
			}
			w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{Prepare: true})
			if err != nil {
				t.Fatal(err)
			}
			store, err := s.Store("gompi://main")
			if err != nil {
				t.Fatal(err)
			}
			if world.Rank() == 0 {
				defer asks(t, sessions.Request{Kind: sessions.Grow, Add: []int{1}}).Free()
			}
			if _, err := store.Get(ctx, true, "there"); err != nil {
				t.Fatal(err)
			}
			for i := range 100 {
				if c, err := w.Check(i); c != nil || err != nil {
					t.Fatalf("handed %v before all newcomers are ready: %v", c, err)
				}
			}
			if err := world.Barrier(); err != nil {
				t.Fatal(err)
			}
			if err := store.Put("go", nil); err != nil {
				t.Error(err)
			}
			for i := 100; c == nil; i++ {
				if c, err = w.Check(i); err != nil {
					t.Fatal(err)
				}
			}
			if world.Rank() == 1 {
				comm, err := c.Complete(ctx)
				if err != nil || comm.Size() != 4 {
					t.Errorf("completed: %v", err)
				}
			} else if world.Rank() == 0 {
				// Rank 2 has not voted before it knows of the decision.
				if comm, err := c.Commit(ctx); err != nil || comm.Size() != 4 {
					t.Errorf("committed: %v", err)
				}
				if err := mpi.Send(world, []int{1}, 2, 0); err != nil {
					t.Error(err)
				}
			} else {
				if _, err := mpi.Recv(world, make([]int, 1), 0, 0); err != nil {
					t.Error(err)
				}
				if comm, err := c.Commit(ctx); err != nil || comm.Size() != 4 {
					t.Errorf("committed: %v", err)
				}
			}
		}, over(transport)...)
	})
}

// Requests that cannot be are refused, and say why, of which class, and what has
// replaced a set.
func TestRefused(t *testing.T) {
	mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
		ctx := t.Context()
		w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := open(t)
		defer s.Close()
		if err := world.Barrier(); err != nil {
			t.Fatal(err)
		}
		refused := func(r sessions.Request, class error, text string) *sessions.RefusedError {
			t.Helper()
			op, err := sessions.Submit(ctx, r)
			var e *sessions.RefusedError
			if op != nil || !errors.As(err, &e) || !errors.Is(err, class) || !errors.Is(err, sessions.ErrRefused) || !strings.Contains(e.Text, text) {
				t.Errorf("%+v: %v, want %v: %s", r, err, class, text)
			}
			return e
		}
		if world.Rank() == 0 {
			if _, err := s.Combine(sessions.Algebra{Do: sessions.Union, In: []string{"mpi://SELF"}, Names: []string{"me"}}); err != nil {
				t.Error(err)
			}
			refused(sessions.Request{}, mpi.ErrArg, "")
			refused(sessions.Request{Kind: sessions.Grow, In: toMain}, mpi.ErrArg, "grow")
			refused(sessions.Request{Kind: sessions.Shrink, In: toMain, Sub: 4}, mpi.ErrArg, "4 of the 3")
			refused(sessions.Request{Kind: sessions.Shrink, In: toMain, Sub: 3}, mpi.ErrArg, "all 3")
			refused(sessions.Request{Kind: sessions.Grow, In: []string{"app://me"}, Add: []int{1}}, sessions.ErrNoWatch, "no member watches")
			refused(sessions.Request{Kind: sessions.Grow, In: []string{"app://you"}, Add: []int{1}}, sessions.ErrSet, "app://you")
			refused(sessions.Request{Kind: sessions.Grow, In: []string{""}, Add: []int{1}}, mpi.ErrArg, "the empty set")
			refused(sessions.Request{Kind: sessions.Shrink, In: toMain, Ranks: []int{3}}, mpi.ErrRank, "rank 3 of the 3 processes of gompi://main")
			refused(sessions.Request{Kind: sessions.Sub, In: []string{"gompi://main", "app://me"}, Ranks: []int{0}}, mpi.ErrArg, "2 sets")
			refused(sessions.Request{Kind: sessions.Grow, In: toMain, Add: []int{1}, Names: []string{"me"}}, sessions.ErrRefused, "me")
			op := asks(t, sessions.Request{Kind: sessions.Shrink, Ranks: []int{2}})
			defer op.Free()
			refused(sessions.Request{Kind: sessions.Grow, In: toMain, Add: []int{1}, NoQueue: true}, sessions.ErrRefused, "taken")
			refused(sessions.Request{Kind: sessions.Shrink, In: []string{"mpi://WORLD"}, Ranks: []int{2}}, sessions.ErrRefused, "another change removes")
			waits := asks(t, sessions.Request{Kind: sessions.Grow, Add: []int{1}})
			defer waits.Free()
			if err := waits.Update([]byte("{}")); err != nil || waits.State() != sessions.Queued {
				t.Errorf("one that is %v: %v", waits.State(), err)
			}
			if err := waits.Cancel(ctx); err != nil || waits.State() != sessions.Cancelled {
				t.Errorf("one that is %v: %v", waits.State(), err)
			}
		}
		var c *sessions.Change
		for i := 0; c == nil; i++ {
			if c, err = w.Check(i); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Commit(ctx); errors.Is(err, sessions.ErrLeaving) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if world.Rank() == 0 {
			e := refused(sessions.Request{Kind: sessions.Grow, In: []string{"mpi://WORLD"}, Add: []int{1}}, sessions.ErrSetReplaced, "")
			if e != nil && e.Successor != c.Result {
				t.Errorf("the successor is %s, not %s", e.Successor, c.Result)
			}
		}
		if i, err := s.Info("gompi://main"); err != nil || i.Size != 2 || i.Primary != (world.Rank() == 0) || !i.Dynamic {
			t.Errorf("the main set: %+v, %v", i, err)
		}
	})
}
