// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gompi/internal/core"
	"gompi/mpi"
	"gompi/mpitest"
)

// The context of a rank carries its process, and that of another none.
func TestFromContext(t *testing.T) {
	if p, ok := mpi.FromContext(t.Context()); ok || p != nil {
		t.Fatalf("the test's own context carries process %v", p)
	}
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if p, ok := mpi.FromContext(ctx); !ok || p != w.Process() {
			t.Errorf("process %p %v, want %p", p, ok, w.Process())
		}
		p, err := mpi.Acquire(ctx)
		if err != nil || p != w.Process() {
			t.Errorf("acquired %p, %v, want %p", p, err, w.Process())
		}
		if err := p.Release(ctx); err != nil || p.Context().Err() != nil {
			t.Errorf("a use with the process's context has ended it: %v", err)
		}
	})
}

// Init and sessions have one process, which leaves with the last of them.
func TestProgramJoinsOnce(t *testing.T) {
	ctx := t.Context()
	p, err := mpi.Init()
	if err != nil {
		t.Fatal(err)
	}
	q, err := mpi.Acquire(ctx)
	if err != nil || p != q {
		t.Fatalf("acquired %p, %v, want %p", q, err, p)
	}
	if err := p.Finalize(); err != nil {
		t.Fatal(err)
	}
	if err := q.World().Process().Context().Err(); err != nil {
		t.Errorf("Finalize has ended a process that a session uses: %v", err)
	}
	if err := q.Release(ctx); err != nil || q.Context().Err() == nil {
		t.Errorf("the last release: %v, context %v", err, q.Context().Err())
	}
	wantError(t, p.Finalize(), mpi.ErrFinalized)
	for range 3 { // again, of a program that is alone
		if p, err = mpi.Acquire(ctx); err != nil || p.World().Size() != 1 {
			t.Fatal(p, err)
		}
		if err := p.Release(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// endingRank returns what says how its process is to end.
func endingRank(w *mpi.Comm, args []string) error {
	end := map[string]core.Ending{"left": core.EndLeft, "discarded": core.EndDiscarded}[args[0]]
	return &mpi.Error{Class: mpi.ErrComm, Op: "Commit", Peer: mpi.ProcNull, Err: fmt.Errorf("as a program wraps it: %w", end)}
}

// Who leaves by a change ends with status 0, and without a word.
func TestLeaverEndsInOrder(t *testing.T) {
	r := osRanks(t, 2, []string{"ending", "left"})
	if out := strings.TrimSpace(r.Stdout + r.Stderr); r.Status != 0 || out != "" {
		t.Errorf("status %d:\n%s", r.Status, out)
	}
}
