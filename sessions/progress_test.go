// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"strings"
	"testing"
	"time"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// A newcomer that prepares for longer than its deadline comes if it says that it has more
// and more bytes, and does not if it says nothing.
func TestNewcomerComesNearer(t *testing.T) {
	const (
		ready = time.Second
		takes = 5 * time.Second / 2
	)
	for _, hangs := range []bool{false, true} {
		t.Run(map[bool]string{false: "reads", true: "hangs"}[hangs], func(t *testing.T) {
			mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
				ctx := t.Context()
				c, err := sessions.Joined(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if c != nil {
					beat := time.NewTicker(20 * time.Millisecond)
					defer beat.Stop()
					for began := time.Now(); time.Since(began) < takes && !c.Over(); <-beat.C {
						if !hangs {
							c.AddBytes(1)
						}
					}
					if err := c.Ready(); err != nil {
						t.Fatal(err)
					}
					if _, err := c.Commit(ctx); (err == nil) == hangs {
						t.Errorf("it is committed: %v", err)
					}
					return
				}
				w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{Prepare: true})
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				if err := world.Barrier(); err != nil {
					t.Fatal(err)
				}
				if world.Rank() == 0 {
					op, err := sessions.Submit(ctx, sessions.Request{Kind: sessions.Grow, In: toMain, Add: []int{1}, Deadlines: sessions.Deadlines{Ready: ready}})
					if err != nil {
						t.Fatal(err)
					}
					defer op.Free()
					if hangs {
						x, err := op.Decided(ctx)
						if err != nil || x.State != sessions.RolledBack || !strings.Contains(x.Err.Error(), "new.0 to be ready") {
							t.Errorf("%v, %v, %v", x.State, x.Err, err)
						}
					}
				}
				if hangs {
					if err := world.Barrier(); err != nil {
						t.Error(err)
					}
					return
				}
				for c == nil {
					if c, err = w.Check(sessions.Now); err != nil {
						t.Fatal(err)
					}
				}
				c.AddBytes(1) // says nothing: it is a member
				if comm, err := c.Commit(ctx); err != nil || comm.Size() != 3 {
					t.Error(err)
				}
			})
		})
	}
}
