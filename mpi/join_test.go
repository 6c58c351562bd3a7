// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"gompi/internal/test/testjob"
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
	for range 3 { // again, as after Main
		if err := q.Release(ctx); err != nil || q.Context().Err() != nil {
			t.Fatalf("the last release: %v, context %v", err, q.Context().Err())
		}
		if p, err = mpi.Acquire(ctx); err != nil || p != q || p.World().Size() != 1 {
			t.Fatal(p, err)
		}
		if sum, err := mpi.AllreduceOne(p.World(), 3, mpi.Sum); err != nil || sum != 3 {
			t.Fatal(sum, err)
		}
	}
	if err := p.Finalize(); err != nil || p.Context().Err() == nil {
		t.Errorf("Finalize: %v, context %v", err, p.Context().Err())
	}
	wantError(t, p.Finalize(), mpi.ErrFinalized)
	if q, err = mpi.Init(); err != nil || q == p { // a program that is alone may do so
		t.Fatal(q, err)
	}
	if err := q.Finalize(); err != nil {
		t.Error(err)
	}
}

// Processes that use no world make none, and whoever makes it late is a member like
// any other: for messages that came before, and for deaths that were told before.
func TestWorldAtFirstUse(t *testing.T) {
	for _, transport := range []string{"inproc", "shm"} {
		j := testjob.New(t, testjob.Transport(transport))
		ps := make([]*mpi.Process, 3)
		for i, sp := range j.Add(3) {
			var err error
			if ps[i], err = j.Boot(sp); err != nil {
				t.Fatal(err)
			}
		}
		if err := mpi.Send(ps[0].World(), []int{7}, 1, 0); err != nil {
			t.Fatal(err)
		}
		j.Kill(ps[2])
		if _, err := mpi.Recv(ps[0].World(), make([]int, 1), 2, 0); !errors.Is(err, mpi.ErrProcFailed) {
			t.Errorf("a receive from the dead: %v", err)
		}
		worlds := make([]*mpi.Comm, 8)
		var wg sync.WaitGroup
		for i := range worlds {
			wg.Go(func() { worlds[i] = ps[1].World() })
		}
		wg.Wait()
		for _, w := range worlds {
			if w != worlds[0] || w.Rank() != 1 || w.Size() != 3 {
				t.Fatalf("world %p, rank %d of %d", w, w.Rank(), w.Size())
			}
		}
		got := make([]int, 1)
		if _, err := mpi.Recv(ps[1].World(), got, 0, 0); err != nil || got[0] != 7 {
			t.Errorf("%s: what came before the world: %v, %v", transport, got, err)
		}
		if err := ps[1].World().Barrier(); !errors.Is(err, mpi.ErrProcFailed) {
			t.Errorf("%s: a barrier with one who died before the world: %v", transport, err)
		}
		for _, p := range ps[:2] {
			if err := j.Leave(p); err != nil {
				t.Error(err)
			}
		}
	}
}

// A process that never uses a communicator of all has none, until it is asked for,
// even after the end.
func TestWorldOfTheFinalized(t *testing.T) {
	p, err := mpi.Init()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Finalize(); err != nil {
		t.Fatal(err)
	}
	wantError(t, p.World().Barrier(), mpi.ErrFinalized)
	wantError(t, mpi.Send(p.Self(), []int{1}, 0, 0), mpi.ErrFinalized)
}
