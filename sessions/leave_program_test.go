// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// With GOMPI_CHECK=1 the communicator of a change is said to be made where the program has
// called Commit; one that frees it, and one that leaves, are told nothing.
func TestCheckOfChanges(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := mpitest.Exec(t, 2, []string{self, "rank", "leaves"}, mpitest.Flags("--check", "1", "--schedule", "0s:+1"))
	const want = "made at leave_program_test.go:"
	if n := strings.Count(r.Stderr, "was not freed"); r.Status != 0 || n != 1 || !strings.Contains(r.Stderr, "gompi: rank 1 ends at ") || !strings.Contains(r.Stderr, want) {
		t.Errorf("status %d, %d communicators, want 1 of rank 1, %s:\n%s", r.Status, n, want, r.Stderr)
	}
}

// leavesProgram grows to three ranks and shrinks to two; rank 1 does not free its
// communicator.
func leavesProgram() {
	mpi.Main(func(ctx context.Context, world *mpi.Comm) error {
		comm := world
		c, err := sessions.Joined(ctx)
		if err != nil {
			return err
		}
		var w *sessions.Watcher
		i := 0
		if c == nil {
			if w, err = sessions.Watch(ctx, "gompi://main", sessions.Options{}); err != nil {
				return err
			}
			defer w.Close()
		}
		for changes := 0; changes < 2; i++ {
			if w != nil {
				if c, err = w.Check(i); err != nil {
					return err
				}
			}
			if c == nil {
				continue
			}
			after, err := c.Commit(ctx)
			if err != nil {
				return err
			}
			if err := comm.Free(); err != nil {
				return err
			}
			if w == nil {
				if i, err = c.Iteration(ctx); err != nil {
					return err
				}
				if w, err = sessions.Watch(ctx, "gompi://main", sessions.Options{}); err != nil {
					return err
				}
				defer w.Close()
			}
			if changes, comm = changes+1, after; comm.Size() == 2 {
				break
			}
			if comm.Rank() == 0 {
				if _, err := sessions.Submit(ctx, sessions.Request{Kind: sessions.Shrink, In: []string{"gompi://main"}, Sub: 1}); err != nil {
					return err
				}
			}
		}
		if comm.Rank() == 1 {
			return nil
		}
		return comm.Free()
	})
}
