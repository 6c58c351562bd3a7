// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/control/controltest"
	"gompi/internal/core"
	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// TestTooMuchForThePage: of a change with more sets than the page has room for members
// ask the head.
func TestTooMuchForThePage(t *testing.T) {
	s := &said{kind: map[string]int{}}
	var all sync.WaitGroup
	all.Add(2)
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		ctx := t.Context()
		c, err := sessions.Joined(ctx)
		if err == nil && c == nil {
			add := sessions.Request{Kind: sessions.Add, In: []string{"mpi://WORLD"}, Add: []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}
			c, err = handOut(ctx, world, add)
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Joining) != 14 {
			t.Errorf("handed %+v", c)
		}
		if _, err := c.Commit(ctx); err != nil {
			t.Error(err)
		}
	}, testjob.Overheard(func(c core.Control) core.Control { return overheard{c, s} }))
	if n := s.all()["*protocol.GetChange"]; n != 2 {
		t.Errorf("%d of 2 members have asked", n)
	}
}

// handOut asks for a change on rank 0 and returns it on each.
func handOut(ctx context.Context, world *mpi.Comm, r sessions.Request) (*sessions.Change, error) {
	w, err := sessions.Watch(ctx, "mpi://WORLD", sessions.Options{})
	if err == nil && world.Rank() == 0 {
		_, err = sessions.Submit(ctx, r)
	}
	var c *sessions.Change
	for i := 0; err == nil && c == nil; i++ {
		if err = world.Barrier(); err == nil {
			c, err = w.Check(i)
		}
	}
	return c, err
}

// TestCompleteForAll: a change without a Result that one has completed for all is
// handed to the others nevertheless, in the same iteration, and the next one begins
// behind that.
func TestCompleteForAll(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		nothingLeft(t)
		var completed atomic.Int64 // changes
		var at [2][3]int
		var leavers atomic.Int64
		mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
			ctx := t.Context()
			c, err := sessions.Joined(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if c != nil {
				if _, err := c.Commit(ctx); err != nil {
					t.Error(err)
				}
				return
			}
			w, err := sessions.Watch(ctx, "mpi://WORLD", sessions.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := world.Barrier(); err != nil {
				t.Fatal(err)
			}
			i := 10
			next := func() *sessions.Change {
				for ; ; i++ {
					c, err := w.Check(i)
					if err != nil {
						t.Fatal(err)
					}
					if c != nil {
						return c
					}
				}
			}
			var ops [2]*sessions.Operation
			for k := range ops {
				if world.Rank() == 0 {
					r := sessions.Request{Kind: sessions.Add, In: []string{"mpi://WORLD"}, Add: []int{1}}
					if k == 1 {
						r = sessions.Request{Kind: sessions.Sub, In: []string{"mpi://WORLD"}, Ranks: []int{2}}
					}
					if ops[k], err = sessions.Submit(ctx, r); err != nil {
						t.Fatal(err)
					}
				}
			}
			for k := range ops {
				// The others look when rank 0 has voted for all.
				if world.Rank() != 0 {
					for completed.Load() <= int64(k) {
						runtime.Gosched()
					}
				}
				c := next()
				at[k][world.Rank()] = i
				i++
				if world.Rank() != 0 {
					_, err = c.Commit(ctx)
				} else if _, err = c.Complete(ctx); err == nil {
					if x, err := ops[k].Decided(ctx); err != nil || x.Err != nil {
						t.Error(err, x.Err)
					}
					completed.Add(1)
				}
				if errors.Is(err, sessions.ErrLeaving) {
					leavers.Add(1)
					return
				}
				if err != nil {
					t.Errorf("change %d: %v", k, err)
				}
			}
		}, append(over(transport), mpitest.Within(time.Minute))...)
		for k := range at {
			if at[k][1] != at[k][0] || at[k][2] != at[k][0] {
				t.Errorf("change %d was handed out in the iterations %v", k, at[k])
			}
		}
		if leavers.Load() != 1 || at[1][0] <= at[0][0] {
			t.Errorf("%d have left by %v", leavers.Load(), at)
		}
	})
}

// TestNeverConsumed: a change that was handed out and dropped keeps no page, neither
// when it is rolled back nor when its watch is closed.
func TestNeverConsumed(t *testing.T) {
	j := testjob.New(t)
	var procs [2]*mpi.Process
	for i, sp := range j.Add(len(procs)) {
		p, err := j.Boot(sp)
		if err != nil {
			t.Fatal(err)
		}
		procs[i] = p
		defer j.Leave(p)
	}
	pages := func(n int) {
		t.Helper()
		controltest.WaitFor(t, fmt.Sprintf("%d pages", n), func() bool { runtime.GC(); return j.Server.Sizes()["ranges"] == n })
	}
	shrink := sessions.Request{Kind: sessions.Shrink, In: []string{"mpi://WORLD"}, Ranks: []int{1}, Deadlines: sessions.Deadlines{Whole: 100 * time.Millisecond}}
	for _, closed := range []bool{false, true} {
		var ws [2]*sessions.Watcher
		for i, p := range procs {
			w, err := sessions.Watch(p.Context(), "mpi://WORLD", sessions.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ws[i] = w
		}
		op, err := sessions.Submit(procs[0].Context(), shrink)
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		check := func() (c *sessions.Change) {
			i++
			for _, w := range []*sessions.Watcher{ws[1], ws[0]} {
				if c, err = w.Check(i); err != nil {
					t.Fatal(err)
				}
			}
			return c
		}
		for check() == nil {
		}
		pages(2)
		end := func() {
			for _, w := range ws {
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		if closed {
			end()
		}
		if x, err := op.Wait(procs[0].Context()); err != nil || x.State != sessions.RolledBack {
			t.Fatal(x, err)
		}
		if !closed {
			if c := check(); c != nil {
				t.Errorf("handed %+v after the roll-back", c)
			}
			pages(1)
			end()
		}
		pages(0)
	}
}
