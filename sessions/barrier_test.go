// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// A Barrier that a process does not call ends with its context, on all that wait.
func TestBarrierEndsWithContext(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
			s, err := sessions.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Barrier(t.Context(), "mpi://WORLD"); err != nil {
				t.Error(err)
			}
			if world.Rank() == 1 {
				if err := world.Barrier(); err != nil {
					t.Error(err)
				}
				return
			}
			ctx := t.Context()
			if world.Rank() == 0 {
				soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
				defer cancel()
				ctx = soon
			}
			want := map[int]error{0: mpi.ErrCancelled, 2: mpi.ErrRevoked}[world.Rank()]
			if err := s.Barrier(ctx, "mpi://WORLD"); !errors.Is(err, want) {
				t.Errorf("rank %d: %v, want %v", world.Rank(), err, want)
			}
			if err := world.Barrier(); err != nil {
				t.Error(err)
			}
		}, over(transport)...)
	})
}
