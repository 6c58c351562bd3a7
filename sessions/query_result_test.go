// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// TestQueryAhead: the members of what a change makes ask for its changes before it is
// decided, and their calls of before and after that count together: the next change is
// seen by the same of them, whoever was late.
func TestQueryAhead(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		nothingLeft(t)
		var mu sync.Mutex
		saw := map[int]int{} // how many of the four see the second change by which call
		mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
			ctx := t.Context()
			c, err := sessions.Joined(ctx)
			if err != nil {
				t.Fatal(err)
			}
			s := open(t)
			defer s.Close()
			var w *sessions.Watcher
			if c == nil {
				if w, err = sessions.Watch(ctx, mainSet, sessions.Options{}); err == nil && world.Rank() == 0 {
					_, err = sessions.Submit(ctx, sessions.Request{Kind: sessions.Grow, In: toMain, Add: []int{1}})
				}
				if err != nil {
					t.Fatal(err)
				}
				c, _ = querying(t, w, 0)
			} else if w, err = sessions.Watch(ctx, c.Result, sessions.Options{}); err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			result := c.Result
			comm, err := s.Comm(result)
			if err != nil {
				t.Fatal(err)
			}
			rank, calls := comm.Rank(), 0
			query := func() *sessions.Change {
				t.Helper()
				x, err := w.Query(ctx, result, result)
				if err != nil {
					t.Fatalf("call %d of rank %d: %v", calls, rank, err)
				}
				calls++
				return x
			}
			for range 3 * rank { // some ask before the decision, and some not
				if x := query(); x != nil {
					t.Fatalf("seen before the decision: %+v", x)
				}
			}
			if x, err := w.Query(ctx, "mpi://SELF", result); x != nil || err != nil {
				t.Fatalf("seen before the decision: %+v, %v", x, err)
			}
			if err := comm.Barrier(); err != nil {
				t.Fatal(err)
			}
			if rank == 1 {
				if _, err := c.Complete(ctx); err != nil {
					t.Fatal(err)
				}
				op, err := sessions.Submit(ctx, sessions.Request{Kind: sessions.Shrink, In: []string{result}, Sub: 3})
				if err != nil {
					t.Fatal(err)
				}
				defer op.Free()
			}
			var x *sessions.Change
			for x == nil {
				x = query()
				for range calls % (rank + 1) {
					runtime.Gosched()
				}
			}
			mu.Lock()
			saw[calls]++
			mu.Unlock()
			if x.Input != result || x.Kind() != sessions.Shrink {
				t.Errorf("seen: %+v", x)
			}
			// What the first change has made is there still, for who wants it.
			if first, err := c.Commit(ctx); err != nil || first.Size() != 4 {
				t.Errorf("the first change: %v", err)
			}
			if comm, err := x.Commit(ctx); !errors.Is(err, sessions.ErrLeaving) && (err != nil || comm.Size() != 1) {
				t.Error(err)
			}
		}, over(transport)...)
		if len(saw) != 1 {
			t.Errorf("members see the second change by calls of these numbers: %v", saw)
		}
	})
}
