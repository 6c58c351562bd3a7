// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// A change that is shown before any member has called Check is handed out at an
// iteration of theirs, wherever they begin, and newcomers are told that one.
func TestShownBeforeTheFirstCheck(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
			ctx := t.Context()
			c, err := sessions.Joined(ctx)
			if err != nil {
				t.Fatal(err)
			}
			i := 1000
			if c == nil {
				w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
				if err == nil {
					err = world.Barrier()
				}
				if err == nil && world.Rank() == 0 {
					err = showChange(t, w, transport)
				}
				if err == nil {
					err = world.Barrier()
				}
				if err != nil {
					t.Fatal(err)
				}
				for ; ; i++ {
					if c, err = w.Check(i); c != nil || err != nil {
						break
					}
					if err := world.Barrier(); err != nil {
						t.Fatal(err)
					}
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			comm, err := c.Commit(ctx)
			if err != nil {
				t.Fatal(err)
			}
			n, err := c.Iteration(ctx)
			if c.Role == sessions.Joining {
				i = n
			}
			if n != i || err != nil {
				t.Errorf("rank %d: iteration %d, %v of a change that was handed out in %d", comm.Rank(), n, err, i)
			}
			all := make([]int, comm.Size())
			if err := mpi.Allgather(comm, []int{i}, all); err != nil {
				t.Fatal(err)
			}
			if all[0] < 1000 || len(slices.Compact(all)) != 1 {
				t.Errorf("handed a change in iterations %d", all)
			}
		}, over(transport)...)
	})
}

// showChange asks for a newcomer, and returns when members may be handed the change.
func showChange(t *mpitest.T, w *sessions.Watcher, transport string) error {
	op, err := sessions.Submit(t.Context(), sessions.Request{Kind: sessions.Grow, In: toMain, Add: []int{1}})
	if err != nil {
		return err
	}
	defer op.Free()
	for ; ; runtime.Gosched() {
		switch s := op.State(); {
		case s > sessions.Ready:
			return errors.New("the change is " + s.String())
		case s < sessions.Ready:
			continue
		case transport == onHosts: // who looks would have the iteration found
			return nil
		}
		if c, err := w.Pending(); c != nil || err != nil {
			return err
		}
	}
}
