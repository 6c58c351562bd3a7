// SPDX-License-Identifier: Apache-2.0

package proc_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpi/proc"
	"gompi/mpitest"
)

// Ranks take places, start, attach, free and give up at random, all at once, on slots
// that are too few; in the end one of them gets all that nobody holds.
func TestSoakRequests(t *testing.T) {
	seeds, rounds := uint64(testlab.Rounds(3, 100)), testlab.Rounds(10, 100)
	const ranks, slots = 3, 9
	for seed := range seeds {
		mpitest.Run(t, ranks, func(t *mpitest.T, w *mpi.Comm) {
			if started(w) {
				c, err := w.Process().Parent()
				if err == nil && c != nil {
					_, err = family(c, true)
				}
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			rng := rand.New(rand.NewPCG(seed, uint64(w.Rank())))
			for i := range rounds {
				if err := oneRound(t.Context(), w.Process(), rng); err != nil {
					t.Fatalf("seed %d, round %d: %v", seed, i, err)
				}
			}
			if err := w.Barrier(); err != nil {
				t.Fatal(err)
			}
			if w.Rank() == 0 {
				reqs, err := proc.Allocate(t.Context(), w.Process(), proc.Places{N: slots - ranks, Scheduler: "wait=1m"})
				if err = errors.Join(err, mpi.FreeAll(reqs)); err != nil {
					t.Fatal(err)
				}
			}
		}, mpitest.Slots(slots), mpitest.Transport([]string{"inproc", "shm", "tcp"}[seed%3]), mpitest.Within(2*time.Minute))
	}
}

// oneRound takes places, and does something with them.
func oneRound(ctx context.Context, p *mpi.Process, rng *rand.Rand) error {
	want := proc.Places{N: 1 + rng.IntN(4), Soft: rng.IntN(2) == 0}
	if !want.Soft {
		want.Scheduler = "wait=1m"
	}
	reqs, err := proc.Iallocate(p, want)
	if err != nil {
		return err
	}
	if rng.IntN(6) == 0 {
		return mpi.FreeAll(reqs) // whatever has come of it
	}
	if rng.IntN(6) == 0 {
		if err := reqs[0].Cancel(); err != nil {
			return err
		}
	}
	if err := mpi.Waitall(reqs); err != nil {
		if errors.Is(err, mpi.ErrSpawn) && want.Soft { // nothing is free
			return mpi.FreeAll(reqs)
		}
		return err
	}
	if reqs, err = proc.Served(reqs); err != nil || len(reqs) == 0 {
		return err
	}
	k := rng.IntN(len(reqs) + 1) // so many are started, in two worlds
	for _, list := range [][]*mpi.Persistent{reqs[:k/2], reqs[k/2 : k]} {
		if err := mpi.Startall(list); err != nil {
			return err
		}
	}
	if rng.IntN(4) == 0 { // some of them are starting
		return mpi.FreeAll(reqs)
	}
	if err := mpi.Waitall(reqs); err != nil {
		return err
	}
	if n := rng.IntN(k + 1); n > 0 {
		c, err := proc.RemoteAttach(p.Self(), reqs[k-n:k]...)
		if err != nil {
			return err
		}
		if _, err := family(c, false); err != nil {
			return err
		}
		reqs, k = append(reqs[k-n:k:k], append(reqs[:k-n:k-n], reqs[k:]...)...), n
		if rng.IntN(2) == 0 {
			if err := mpi.Waitall(reqs[:k]); err != nil {
				return err
			}
			for _, r := range reqs[:k] {
				if x, ok := proc.ExitOf(r); !ok || x.Status != 0 {
					return fmt.Errorf("exit %+v, %v", x, ok)
				}
			}
		}
	}
	return mpi.FreeAll(reqs)
}
