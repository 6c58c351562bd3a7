// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// resizingLoop is the function of ranks that iterate together and adopt what changes
// gompi://main, until they are so many as last. ask is called by rank 0 of each size
// that is reached.
func resizingLoop(t *mpitest.T, world *mpi.Comm, last int, ask func(t *mpitest.T, size int)) (sizes []int) {
	ctx, comm, i := t.Context(), world, 0
	c, err := sessions.Joined(ctx)
	if err == nil && c != nil {
		if i, err = c.Iteration(ctx); err == nil {
			comm, err = c.Commit(ctx)
			i++
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	sizes = append(sizes, comm.Size())
	for asked := 0; comm.Size() != last; i++ {
		if comm.Rank() == 0 && asked != comm.Size() {
			asked = comm.Size()
			ask(t, asked)
		}
		c, err := w.Check(i)
		if err != nil {
			t.Fatal(err)
		}
		if c != nil {
			comm, err = c.Commit(ctx)
			if errors.Is(err, sessions.ErrLeaving) {
				return sizes
			}
			if err != nil {
				t.Fatal(err)
			}
			sizes = append(sizes, comm.Size())
			continue
		}
		lo, err := mpi.AllreduceOne(comm, i, mpi.Min)
		if err != nil || lo != i {
			t.Fatalf("iteration %d beside %d, %v", i, lo, err)
		}
	}
	return sizes
}

// Ranks come and go while others compute, also rank 0.
func TestRanksResize(t *testing.T) {
	for _, transport := range []string{"inproc", "shm"} {
		var mu sync.Mutex
		seen := map[string]int{}
		var asked []*mpitest.Resize
		mpitest.Run(t, 4, func(t *mpitest.T, world *mpi.Comm) {
			sizes := resizingLoop(t, world, 3, func(t *mpitest.T, size int) {
				var r *mpitest.Resize
				var err error
				if size == 4 {
					r, err = t.Grow(2)
				} else {
					r, err = t.Shrink(0, 4, 5)
				}
				if err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, r)
			})
			mu.Lock()
			defer mu.Unlock()
			seen[fmt.Sprint(sizes)]++
		}, mpitest.Transport(transport))
		want := map[string]int{"[4 6 3]": 3, "[4 6]": 1, "[6]": 2}
		for s, n := range want {
			if seen[s] != n {
				t.Errorf("%s: %d ranks of the sizes %s, want %d: %v", transport, seen[s], s, n, seen)
			}
		}
		if len(asked) != 2 {
			t.Errorf("%d changes", len(asked))
		}
	}
}

// A newcomer whose change does not happen fails nothing.
func TestRanksRolledBack(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		ctx := t.Context()
		c, err := sessions.Joined(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if c != nil {
			_, err := c.Commit(ctx)
			t.Fatal("a newcomer of no change: ", err)
		}
		w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := world.Barrier(); err != nil {
			t.Fatal(err)
		}
		if world.Rank() == 0 {
			r, err := t.Grow(3)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil { // this member cannot follow
				t.Error(err)
			}
			if err := r.Wait(); err == nil {
				t.Error("the change has happened")
			}
		}
		if err := world.Barrier(); err != nil {
			t.Fatal(err)
		}
	})
}
