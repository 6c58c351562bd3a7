// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"errors"
	"fmt"
	"strings"
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

// Who leaves waits until its sends are received, gives up its receives and names
// them, and waits for no question to a store; later calls of others that need it say that it has left.
func TestLeaverTakesLeave(t *testing.T) {
	for _, transport := range []string{"inproc", "shm"} {
		mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
			ctx := t.Context()
			w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			s := open(t)
			if err := world.Barrier(); err != nil {
				t.Fatal(err)
			}
			if world.Rank() == 0 {
				if _, err := t.Shrink(2); err != nil {
					t.Fatal(err)
				}
			}
			var c *sessions.Change
			for i := 0; c == nil; i++ {
				if err := world.Barrier(); err != nil {
					t.Fatal(err)
				}
				if c, err = w.Check(i); err != nil {
					t.Fatal(err)
				}
			}
			large := make([]byte, 1<<20)
			var never mpi.Request
			if world.Rank() == 2 {
				large[len(large)-1] = 7
				mpi.Isend(world, large, 1, 0)
				never = mpi.Irecv(world, make([]int, 1), 0, 5)
				store, err := s.Store("gompi://main")
				if err != nil {
					t.Fatal(err)
				}
				store.IGet(ctx, true, "never")
			}
			comm, err := c.Commit(ctx)
			if world.Rank() == 2 {
				if !errors.Is(err, sessions.ErrLeaving) || !strings.Contains(fmt.Sprint(err), "Irecv from rank 0, tag 5, WORLD") || strings.Contains(fmt.Sprint(err), "Isend") {
					t.Errorf("a leaver's Commit: %v", err)
				}
				if _, err := never.Wait(); !errors.Is(err, mpi.ErrCancelled) {
					t.Errorf("what was withdrawn: %v", err)
				}
				return
			}
			if err != nil || comm.Size() != 2 {
				t.Fatal(err)
			}
			if world.Rank() == 1 {
				if _, err := mpi.Recv(world, large, 2, 0); err != nil || large[len(large)-1] != 7 {
					t.Errorf("what a leaver has sent: %v", err)
				}
			}
			if _, err := mpi.Recv(world, make([]int, 1), 2, 9); !errors.Is(err, mpi.ErrLeft) {
				t.Errorf("a receive from who has left: %v", err)
			}
			if err := mpi.Send(world, large, 2, 9); !errors.Is(err, mpi.ErrLeft) {
				t.Errorf("a send to who has left: %v", err)
			}
			if err := world.Barrier(); !errors.Is(err, mpi.ErrLeft) {
				t.Errorf("a barrier with who has left: %v", err)
			}
			if err := comm.Barrier(); err != nil {
				t.Error(err)
			}
		}, mpitest.Transport(transport))
	}
}

// Ranks come and go many times, and nothing is left of those who were there.
func TestRanksResizeAgain(t *testing.T) {
	const cycles = 10
	var mu sync.Mutex
	changes := 0
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		resizingLoop(t, world, 1, func(t *mpitest.T, size int) {
			mu.Lock()
			changes++
			n := changes
			mu.Unlock()
			var err error
			switch {
			case n > 2*cycles:
				_, err = t.Shrink(0)
			case size == 2:
				_, err = t.Grow(3)
			default: // the oldest go
				_, err = t.Shrink(0, 1, 2)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	})
	if changes != 2*cycles+1 {
		t.Errorf("%d changes", changes)
	}
}
