// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"testing"
	"time"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// BenchmarkComing is what an Allreduce of 8 B between two ranks over shared memory takes
// while a goroutine of each waits for the next change, against none.
func BenchmarkComing(b *testing.B) {
	for _, waits := range []bool{false, true} {
		name := map[bool]string{false: "alone", true: "beside"}[waits]
		b.Run(name, func(b *testing.B) {
			mpitest.Run(b, 2, func(t *mpitest.T, world *mpi.Comm) {
				w, err := sessions.Watch(t.Context(), "mpi://WORLD", sessions.Options{Prepare: true})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				over := make(chan error)
				go func() {
					defer close(over)
					if waits {
						_, err := w.Coming(ctx)
						over <- err
					}
				}()
				in, out := []int64{1}, make([]int64, 1)
				call := func() {
					if err := mpi.Allreduce(world, in, out, mpi.Sum); err != nil || out[0] != 2 {
						t.Fatal(out, err)
					}
				}
				for range 1000 { // until there is a board, and it is warm
					call()
				}
				if world.Rank() == 0 {
					b.ResetTimer()
				}
				for range b.N {
					call()
				}
				if world.Rank() == 0 {
					b.StopTimer()
				}
				cancel()
				if err := <-over; waits && ctx.Err() == nil {
					t.Error(err)
				}
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}, mpitest.Transport("shm"), mpitest.Within(time.Minute))
		})
	}
}
