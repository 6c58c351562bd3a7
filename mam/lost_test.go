// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"gompi/internal/test/scenes"
	"gompi/mam"
	"gompi/mpi"
)

// bereft: a source dies, and the change that leaves it out names what was lost with it, to
// all who are left; newcomers end without a word.
func bereft(config mam.Config, to int) func(context.Context, *mpi.Comm) error {
	return func(ctx context.Context, world *mpi.Comm) error {
		m, _, err := mam.Init(ctx, world, config, nil)
		if err != nil {
			return err
		}
		defer m.Finalize()
		var x []int32
		step, l := 4, mam.Block(10)
		fill(m, &x, l, func(i int) int32 { return int32(i) })
		if err := errors.Join(mam.Distributed(m, "x", &x, l, mam.Constant), mam.ReplicatedOne(m, "step", &step)); err != nil {
			return err
		}
		if err := world.Barrier(); err != nil {
			return err
		}
		if world.Rank() == 1 {
			scenes.Die(ctx)
		}
		if _, _, err := mpi.RecvOne[int](world, 1, 0); !errors.Is(err, mpi.ErrProcFailed) {
			return fmt.Errorf("received from who has died: %w", err)
		}
		if err := m.SetTarget(to); err != nil {
			return err
		}
		for {
			time.Sleep(iterationTime) //archtest:sleep an iteration of the program
			state, err := m.Checkpoint(mam.Check)
			var lost *mam.LostError
			if errors.As(err, &lost) {
				if want := (&mam.LostError{Name: "x", Ranks: []int{1}, Runs: [][2]int{{4, 3}}}); !reflect.DeepEqual(lost, want) {
					return fmt.Errorf("%+v, want %+v", lost, want)
				}
				if !errors.Is(err, mpi.ErrProcFailed) || x[0] != map[int]int32{0: 0, 2: 7}[world.Rank()] {
					return fmt.Errorf("%w, x begins with %d", err, x[0])
				}
				return m.Finalize()
			}
			if err != nil || state == mam.Completed {
				return fmt.Errorf("%v: %w", state, err)
			}
		}
	}
}

// unfinished: a program ends when newcomers of a change may be anywhere, who say nothing.
func unfinished(config mam.Config, last int) func(context.Context, *mpi.Comm) error {
	return func(ctx context.Context, world *mpi.Comm) error {
		var d whole
		return mam.Loop(ctx, world, config, d.register, func(m *mam.Module, iteration int) (bool, error) {
			if err := errors.Join(d.check(m, iteration), m.Comm().Barrier()); err != nil || iteration == last {
				return true, err
			}
			d.compute()
			return false, m.SetTarget(5 - m.Comm().Size())
		})
	}
}
