// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

const mainSet = "gompi://main"

// querying calls Query until it returns a change, and counts the calls.
func querying(t *mpitest.T, w *sessions.Watcher, rank int) (c *sessions.Change, calls int) {
	for c == nil {
		var err error
		if c, err = w.Query(t.Context(), mainSet, mainSet); err != nil {
			t.Fatal(err)
		}
		calls++
		for range calls % (rank + 1) { // some are faster
			runtime.Gosched()
		}
	}
	return c, calls
}

// TestQuery: members that do not wait for each other see a change by the same of their
// calls, whatever comes and goes.
func TestQuery(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		nothingLeft(t)
		var mu sync.Mutex
		saw := map[string]map[int]int{} // by Result, and call
		mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
			ctx, comm := t.Context(), world
			c, err := sessions.Joined(ctx)
			if err == nil && c != nil {
				comm, err = c.Commit(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			w, err := sessions.Watch(ctx, mainSet, sessions.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			for comm.Size() != 2 {
				if comm.Rank() == 0 && comm.Size() == 3 {
					_, err = t.Grow(2)
				} else if comm.Rank() == 0 {
					_, err = t.Shrink(0, 2, 4)
				}
				if err != nil {
					t.Fatal(err)
				}
				c, k := querying(t, w, world.Rank())
				if again, err := w.Query(ctx, c.Input, mainSet); again != c || err != nil {
					t.Errorf("a call after the first sees %p, not %p: %v", again, c, err)
				}
				mu.Lock()
				if saw[c.Result] == nil {
					saw[c.Result] = map[int]int{}
				}
				saw[c.Result][k]++
				mu.Unlock()
				if comm, err = c.Commit(ctx); errors.Is(err, sessions.ErrLeaving) {
					return
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}, over(transport)...)
		if len(saw) != 2 {
			t.Errorf("%d changes", len(saw))
		}
		for result, calls := range saw {
			if len(calls) != 1 {
				t.Errorf("members see the change to %s by the calls %v", result, calls)
			}
		}
	})
}

// TestQueryRolledBack: those who come late to a change that was rolled back see it by
// the same calls as who was there in time, and until then there is no other.
func TestQueryRolledBack(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		nothingLeft(t)
		var answers []bool // of rank 0, by call
		var mu sync.Mutex
		saw := map[int]int{}
		mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
			ctx := t.Context()
			w, err := sessions.Watch(ctx, mainSet, sessions.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			barrier := func() {
				t.Helper()
				if err := world.Barrier(); err != nil {
					t.Fatal(err)
				}
			}
			query := func() *sessions.Change {
				t.Helper()
				c, err := w.Query(ctx, mainSet, mainSet)
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			rolledBack := func(c *sessions.Change) {
				t.Helper()
				if _, err := c.Commit(ctx); !errors.Is(err, sessions.ErrRolledBack) {
					t.Fatalf("a change that does not happen: %v", err)
				}
			}
			barrier()
			if world.Rank() == 0 {
				request := sessions.Request{Kind: sessions.Shrink, In: []string{mainSet}, Sub: 1, Deadlines: sessions.Deadlines{Whole: 50 * time.Millisecond}}
				var c *sessions.Change
				for c == nil { // it may have been too slow for the deadline
					op, err := sessions.Submit(ctx, request)
					if err != nil {
						t.Fatal(err)
					}
					for c == nil && op.State() < sessions.Refused {
						c = query()
						mu.Lock()
						answers = append(answers, c != nil)
						mu.Unlock()
					}
					op.Free()
				}
				rolledBack(c)
				request.Deadlines.Whole = 0
				op, err := sessions.Submit(ctx, request)
				if err != nil {
					t.Fatal(err)
				}
				for range 200 {
					if op.State(); query() != nil {
						t.Fatal("a change while members have not seen the one before")
					}
					mu.Lock()
					answers = append(answers, false)
					mu.Unlock()
				}
				op.Free()
			}
			barrier()
			if world.Rank() != 0 {
				mu.Lock()
				answers := slices.Clone(answers)
				mu.Unlock()
				for k, want := range answers {
					c := query()
					if (c != nil) != want {
						t.Fatalf("call %d of %d sees %v", k, len(answers), c)
					}
					if c != nil && want {
						rolledBack(c)
					}
				}
			}
			c, k := querying(t, w, world.Rank())
			mu.Lock()
			saw[k]++
			mu.Unlock()
			if _, err := c.Commit(ctx); err != nil && !errors.Is(err, sessions.ErrLeaving) {
				t.Fatal(err)
			}
		}, over(transport)...)
		if len(saw) != 1 {
			t.Errorf("members see the second change after so many calls more: %v", saw)
		}
	})
}

// TestQueryRefuses: what cannot be asked for is an error of its class, and the caller
// alone may ask at any time.
func TestQueryRefuses(t *testing.T) {
	nothingLeft(t)
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		ctx := t.Context()
		w, err := sessions.Watch(ctx, mainSet, sessions.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []struct {
			coll, in string
			class    error
		}{
			{mainSet, mainSet, nil}, {"mpi://SELF", mainSet, nil}, {"MPI://self", "mpi://WORLD", nil}, {"mpi://WORLD", mainSet, nil},
			{mainSet, "mpi://SELF", sessions.ErrRefused}, {"app://none", mainSet, sessions.ErrSet},
		} {
			if c, err := w.Query(ctx, q.coll, q.in); c != nil || q.class == nil && err != nil || q.class != nil && !errors.Is(err, q.class) {
				t.Errorf("Query(%q, %q): %v, %v, want %v", q.coll, q.in, c, err, q.class)
			}
		}
		if err := world.Barrier(); err != nil {
			t.Fatal(err)
		}
		if world.Rank() == 0 {
			if _, err := t.Shrink(1); err != nil {
				t.Fatal(err)
			}
			var c *sessions.Change
			for c == nil {
				if c, err = w.Query(ctx, "mpi://SELF", mainSet); err != nil {
					t.Fatal(err)
				}
				runtime.Gosched()
			}
			if comm, err := c.Commit(ctx); err != nil || comm.Size() != 1 {
				t.Error(err)
			}
		} else {
			c, k := querying(t, w, world.Rank())
			if _, err := c.Commit(ctx); !errors.Is(err, sessions.ErrLeaving) {
				t.Error(fmt.Sprint("call ", k), err)
			}
			if _, err := w.Query(ctx, mainSet, mainSet); !errors.Is(err, sessions.ErrLeaving) {
				t.Errorf("of who has left: %v", err)
			}
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if _, err := w.Query(ctx, mainSet, mainSet); !errors.Is(err, sessions.ErrSession) {
			t.Errorf("after Close: %v", err)
		}
	})
}
