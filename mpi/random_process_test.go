// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mpi_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// programsRank plays random programs one after the other: args are those of
// seeds n+k.
func programsRank(w *mpi.Comm, args []string) error {
	var first, count uint64
	if _, err := fmt.Sscanf(args[0], "%d+%d", &first, &count); err != nil {
		return err
	}
	for seed := first; seed < first+count; seed++ {
		p := testlab.GenerateFor(seed, w.Size())
		c, err := w.Dup()
		if err != nil {
			return err
		}
		got, err := play(p, c)
		if err == nil {
			err = testlab.Check(p, c.Rank(), got)
		}
		if err == nil {
			err = c.Free()
		}
		if err != nil {
			return fmt.Errorf("program %d of %d ranks: %w", seed, p.Ranks, err)
		}
	}
	return nil
}

// TestRandomProcesses runs random programs in real processes, several in each
// job, and compares as TestRandomPrograms does. GOMPI_SEED=n+k makes one job of
// the k programs from n on, over each transport.
func TestRandomProcesses(t *testing.T) {
	jobs, perJob := testlab.Rounds(6, 200), uint64(testlab.Rounds(6, 40))
	const seeds = 1 << 40 // other ones than those of TestRandomPrograms
	first := uint64(seeds)
	if s := os.Getenv(seedEnv); s != "" {
		first, perJob = parseSeeds(t, s)
		jobs = 2
	}
	ranks := [...]int{4, 2, 8, 3, 1, 5, 6, 7}
	for k := range jobs {
		seed := first + uint64(k/2)*perJob
		n := ranks[seed/perJob%uint64(len(ranks))]
		for _, s := range settingsOf(seed) {
			if s.transport != []string{"shm", "tcp"}[k%2] {
				continue
			}
			programs := fmt.Sprintf("%d+%d", seed, perJob)
			r := osRanks(t, n, []string{"programs", programs},
				mpitest.Flags("--transport", s.transport), mpitest.Env(s.knobs...), mpitest.Timeout(2*time.Minute))
			if r.Status != 0 {
				t.Fatalf("%d ranks with %v: status %d\n%s%s\nrepeat with %s=%s go test ./mpi -run TestRandomProcesses",
					n, s, r.Status, r.Stdout, r.Stderr, seedEnv, programs)
			}
		}
	}
}
