// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"errors"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// A newcomer watches what its change makes before it commits that, by the name of the
// Result or as the main set, and is handed the next change with all others.
func TestNewcomerWatchesEarly(t *testing.T) {
	for _, name := range []string{"", "gompi://main"} {
		transports(t, func(t *testing.T, transport string) {
			mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
				ctx := t.Context()
				c, err := sessions.Joined(ctx)
				if err != nil {
					t.Fatal(err)
				}
				var w *sessions.Watcher
				i, comm := 0, world
				if c == nil {
					if w, err = sessions.Watch(ctx, "gompi://main", sessions.Options{}); err == nil && world.Rank() == 0 {
						_, err = sessions.Submit(ctx, sessions.Request{Kind: sessions.Grow, In: toMain, Add: []int{2}})
					}
				} else {
					set := name
					if set == "" {
						set = c.Result
					}
					if _, err := sessions.Watch(ctx, set, sessions.Options{Step: 2}); !errors.Is(err, mpi.ErrRefused) {
						t.Errorf("with other options than the members': %v", err)
					}
					if w, err = sessions.Watch(ctx, set, sessions.Options{}); err == nil {
						i, err = c.Iteration(ctx)
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				for size := comm.Size(); ; i++ {
					if c == nil {
						if c, err = w.Check(i); err != nil {
							t.Fatal(err)
						}
					}
					if c != nil {
						if comm, err = c.Commit(ctx); err != nil {
							if errors.Is(err, sessions.ErrLeaving) {
								return
							}
							t.Fatal(err)
						}
						if c, size = nil, comm.Size(); size == 1 {
							break
						}
						if comm.Rank() == 0 {
							if _, err := sessions.Submit(ctx, sessions.Request{Kind: sessions.Shrink, In: toMain, Sub: 3}); err != nil {
								t.Fatal(err)
							}
						}
					}
					if err := comm.Barrier(); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}, over(transport)...)
		})
	}
}
