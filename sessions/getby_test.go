// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// TestGetBy: the members of one set look up together in another's store, and all get
// what the first of them gets, whichever stores their other calls are for.
func TestGetBy(t *testing.T) {
	nothingLeft(t)
	mpitest.Run(t, 4, func(t *mpitest.T, world *mpi.Comm) {
		ctx := t.Context()
		s := open(t)
		defer s.Close()
		var halves []string
		var err error
		if world.Rank() == 0 {
			halves, err = s.Split(worldSet, []int{3, 1})
		}
		if err == nil {
			halves, err = sharedNames(world, halves)
		}
		if err != nil {
			t.Fatal(err)
		}
		barrier := func() {
			t.Helper()
			if err := world.Barrier(); err != nil {
				t.Fatal(err)
			}
		}
		store, err := s.Store(halves[1])
		if err != nil {
			t.Fatal(err)
		}
		if world.Rank() == 3 { // it has the store, and is no member of those who ask
			if _, err := store.GetBy(ctx, halves[0], false, "key"); !errors.Is(err, mpi.ErrRank) {
				t.Errorf("by who is in no such set: %v", err)
			}
			if _, r := store.IGetBy(ctx, "app://none", false, "key"); !errors.Is(second(r.Wait()), mpi.ErrSet) {
				t.Error("by no set")
			}
			if v, err := store.GetBy(ctx, "mpi://SELF", false, "key"); err != nil || v[0] != nil {
				t.Errorf("alone: %q, %v", v, err)
			}
		}
		barrier()
		// The first one asks before it is there, the others afterwards.
		if world.Rank() == 0 {
			if v, err := store.GetBy(ctx, halves[0], false, "key"); err != nil || v[0] != nil {
				t.Errorf("before: %q, %v", v, err)
			}
		}
		barrier()
		if world.Rank() == 3 {
			if err := store.Put("key", []byte("v")); err != nil {
				t.Error(err)
			}
		}
		barrier()
		if r := world.Rank(); r == 1 || r == 2 {
			if v, err := store.GetBy(ctx, halves[0], true, "key"); err != nil || v[0] != nil {
				t.Errorf("in the call of the first: %q, %v", v, err)
			}
		}
		if world.Rank() < 3 { // the next call is another
			v, r := store.IGetBy(ctx, halves[0], true, "key")
			if _, err := r.Wait(); err != nil || string((*v)[0]) != "v" {
				t.Errorf("after: %q, %v", *v, err)
			}
		}
		barrier()
		switch world.Rank() {
		case 0:
			mine, err := s.Store(halves[0])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := mine.GetAll(ctx, false, "key"); err != nil {
				t.Error(err)
			}
			barrier()
		case 1: // the third call, for another store than the first one's
			barrier()
			if _, err := store.GetBy(ctx, halves[0], false, "key"); !errors.Is(err, mpi.ErrRefused) {
				t.Errorf("for another store: %v", err)
			}
		default:
			barrier()
		}
		barrier()
		// A wait ends with its context, and with the set whose store it is.
		short, cancel := context.WithCancel(ctx)
		if world.Rank() == 2 {
			_, r := store.IGetBy(short, "mpi://SELF", true, "never")
			cancel()
			if _, err := r.Wait(); !errors.Is(err, mpi.ErrCancelled) {
				t.Errorf("given up: %v", err)
			}
		}
		cancel()
		barrier()
	})
}

func second[T any](_ T, err error) error { return err }
