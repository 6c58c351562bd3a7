// SPDX-License-Identifier: Apache-2.0

package proc_test

import (
	"context"
	"fmt"

	"gompi/mpi"
	"gompi/mpi/proc"
)

// stageStatus: each call that completes a request tells in its status which stage that was.
func stageStatus(ctx context.Context, w *mpi.Comm) error {
	if started(w) {
		return nil
	}
	reqs, err := proc.Iallocate(w.Process(), proc.Places{N: 4})
	if err != nil {
		return err
	}
	var said []proc.Stage
	note := func(st mpi.Status, err error) error {
		if err == nil {
			said = append(said, proc.StageOf(st))
		}
		return err
	}
	if err := note(reqs[0].Wait()); err != nil {
		return err
	}
	for done := false; !done; {
		var st mpi.Status
		if done, st, err = reqs[1].Test(); err != nil {
			return err
		}
		if done {
			_ = note(st, nil)
		} else if proc.StageOf(st) != 0 {
			return fmt.Errorf("%v of a request that is not complete", st)
		}
	}
	both := make([]mpi.Completion, 2)
	if err := mpi.WaitallStatuses(reqs[2:], both); err != nil {
		return err
	}
	said = append(said, proc.StageOf(both[0].Status), proc.StageOf(both[1].Status))
	if st, err := reqs[0].Wait(); err != nil || proc.StageOf(st) != 0 {
		return fmt.Errorf("%v of an inactive request: %w", st, err)
	}
	if err := mpi.Startall(reqs); err != nil {
		return err
	}
	for range 2 * len(reqs) {
		i, st, err := mpi.Waitany(reqs)
		if err != nil {
			return err
		}
		if _, ok := proc.ExitOf(reqs[i]); proc.StageOf(st) == proc.Exited && !ok {
			return fmt.Errorf("request %d: %v, and it has not exited", i, st)
		}
		said = append(said, proc.StageOf(st))
	}
	count := map[proc.Stage]int{}
	for _, s := range said {
		count[s]++
	}
	if count[proc.Allocated] != 4 || count[proc.Started] != 4 || count[proc.Exited] != 4 || len(count) != 3 {
		return fmt.Errorf("stages %v", said)
	}
	// One that cannot be started: the error is that of the second stage.
	bad, err := proc.Allocate(ctx, w.Process(), proc.Places{N: 1, Execs: []string{"no such program"}})
	if err != nil {
		return err
	}
	if err := bad[0].Start(); err != nil {
		return err
	}
	if st, err := bad[0].Wait(); proc.StageOf(st) != proc.Started || want(err, mpi.ErrSpawn) != nil {
		return fmt.Errorf("%v, %w", proc.StageOf(st), err)
	}
	return mpi.FreeAll(append(reqs, bad...))
}
