// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gompi/internal/test/scenes"
	"gompi/mpi"
	"gompi/sessions"
)

// dppTold asks until there is an operation, with a barrier in each round: the calls of
// one number agree.
func dppTold(ctx context.Context, s *sessions.Session, comm *mpi.Comm, set string) (x sessions.PSetOperation, err error) {
	for x.Op == sessions.PSetOpNull && err == nil {
		if err = comm.Barrier(); err == nil {
			x, err = s.QueryPSetOp(ctx, set, set)
		}
		if errors.Is(err, sessions.ErrRolledBack) { // an earlier one
			err = nil
		}
	}
	return x, err
}

// dppOld is a program of those that are there from the start, with a session.
func dppOld(run func(ctx context.Context, s *sessions.Session, world *mpi.Comm) error) func(ctx context.Context, world *mpi.Comm) error {
	return func(ctx context.Context, world *mpi.Comm) error {
		s, err := sessions.Open(ctx)
		if err != nil {
			return err
		}
		defer s.Close()
		dynamic, err := hint(s, worldSet, "mpi_dyn")
		switch {
		case err != nil:
			return err
		case dynamic:
			return dppNewcomer(ctx, s)
		}
		return run(ctx, s, world)
	}
}

// dppCompletes stands behind the name of the new main set where a newcomer completes the
// operation.
const dppCompletes = " by a newcomer"

// dppNewcomer is a process that has been started, until what has started it is decided.
func dppNewcomer(ctx context.Context, s *sessions.Session) error {
	main, err := lookup(ctx, s, worldSet, worldSet, "main_pset")
	if err != nil {
		return err
	}
	if main == "" {
		scenes.Die(ctx)
	}
	main, completes := strings.CutSuffix(main, dppCompletes)
	if completes {
		if err := s.Barrier(ctx, main); err != nil {
			return err
		}
		if err := s.FinalizePSetOp(ctx, main); err != nil {
			return err
		}
	}
	return s.Barrier(ctx, main)
}

// dppBeside: two sets change at the same time, neither has to wait for the other; and
// each half is told of the other's change. (Its prototype refuses what is asked for
// while any other change is open.)
func dppBeside(ctx context.Context, s *sessions.Session, world *mpi.Comm) (err error) {
	var halves sessions.PSetOperation
	if world.Rank() == 0 {
		if halves, err = s.PSetOp(ctx, sessions.PSetOpSplit, []string{worldSet}, mpi.NewInfo(sessions.PartSizes, "2,2")); err != nil {
			return err
		}
	}
	if halves.Out, err = sharedNames(world, halves.Out); err != nil {
		return err
	}
	half := world.Rank() / 2
	mine, other := halves.Out[half], halves.Out[1-half]
	comm, err := s.Comm(mine)
	if err != nil {
		return err
	}
	if comm.Rank() == 0 {
		x, err := s.PSetOp(ctx, sessions.PSetOpGrow, []string{mine}, mpi.NewInfo(sessions.ProcsAdd, "1"))
		if err != nil {
			return fmt.Errorf("while the other half may change: %w", err)
		}
		if err := publish(s, x.Out[0], "main_pset", x.Out[1]); err != nil {
			return err
		}
	}
	x, err := dppTold(ctx, s, comm, mine)
	if err != nil {
		return err
	}
	if err := world.Barrier(); err != nil { // both are open
		return err
	}
	var y sessions.PSetOperation
	for y.Op == sessions.PSetOpNull {
		if y, err = s.QueryPSetOp(ctx, mine, other); err != nil {
			return err
		}
	}
	if i, err := s.Info(y.Out[1]); err != nil || y.Op != sessions.PSetOpGrow || i.Size != 3 || i.Included {
		return fmt.Errorf("the other half: %+v, %+v: %w", y, i, err)
	}
	if err := world.Barrier(); err != nil {
		return err
	}
	if world.Rank() == 1 || world.Rank() == 2 { // whoever
		if err := s.FinalizePSetOp(ctx, mine); err != nil {
			return err
		}
	}
	if err := s.Barrier(ctx, x.Out[1]); err != nil {
		return err
	}
	if err := world.Barrier(); err != nil { // both are decided
		return err
	}
	for y.Op != sessions.PSetOpNull && err == nil {
		y, err = s.QueryPSetOp(ctx, x.Out[1], other)
	}
	if err != nil { // the set is still there, and nothing is pending
		return fmt.Errorf("the other half afterwards: %+v, %w", y, err)
	}
	return nil
}

// dppUndone: a newcomer dies before the operation is finalized, which takes it back, and
// all goes on as it was.
func dppUndone(ctx context.Context, s *sessions.Session, world *mpi.Comm) (err error) {
	for _, name := range []bool{false, true} { // the newcomer is told of no set, and dies
		var asked sessions.PSetOperation
		if world.Rank() == 0 {
			asked, err = s.PSetOp(ctx, sessions.PSetOpReplace, []string{worldSet}, mpi.NewInfo(sessions.ProcsAdd, "1", sessions.ProcsSub, "1"))
			if err != nil {
				return err
			}
		}
		x, err := dppTold(ctx, s, world, worldSet)
		if err != nil || world.Rank() == 0 && !slices.Equal(asked.Out, x.Out) {
			return fmt.Errorf("asked for %+v, told of %+v: %w", asked, x, err)
		}
		if err := world.Barrier(); err != nil {
			return err
		}
		if !name {
			if world.Rank() == 0 {
				if err := publish(s, x.Out[1], "main_pset", ""); err != nil {
					return err
				}
			}
			for told := 1; told > 0; { // so often on all
				x, err := s.QueryPSetOp(ctx, worldSet, worldSet)
				if err != nil && !errors.Is(err, sessions.ErrRolledBack) {
					return err
				}
				if told, err = mpi.AllreduceOne(world, int(x.Op), mpi.Sum); err != nil {
					return err
				}
			}
			// Whichever call has found out first, and by each of its sets though they are gone.
			for _, set := range append(x.Out, worldSet) {
				if err := wrongly("finalized what does not happen", s.FinalizePSetOp(ctx, set), sessions.ErrRolledBack); err != nil {
					return fmt.Errorf("%s: %w", set, err)
				}
			}
			if err := world.Barrier(); err != nil { // before the next one
				return err
			}
			continue
		}
		leaves, err := hint(s, x.Out[0], "mpi_included")
		if err != nil {
			return err
		}
		if world.Rank() == 0 {
			if err := publish(s, x.Out[1], "main_pset", x.Out[2]); err != nil {
				return err
			}
		}
		if leaves != (world.Rank() == 1) {
			return fmt.Errorf("rank %d leaves: %v", world.Rank(), leaves)
		}
		if leaves { // even who leaves may do it
			if err := s.FinalizePSetOp(ctx, x.Out[0]); err != nil {
				return err
			}
			return mpi.SendOne(world, 1, 0, 0)
		}
		if _, _, err := mpi.RecvOne[int](world, 1, 0); err != nil {
			return err
		}
		if err := s.Barrier(ctx, x.Out[2]); err != nil { // newcomers end after that
			return err
		}
		if err := wrongly("finalized by another", s.FinalizePSetOp(ctx, worldSet), mpi.ErrArg); err != nil {
			return err
		}
	}
	return nil
}

// dppUndoneBeside: who was told of an operation of another set is told, too, that it does
// not happen.
func dppUndoneBeside(ctx context.Context, s *sessions.Session, world *mpi.Comm) (err error) {
	var parts, asked sessions.PSetOperation
	if world.Rank() == 0 {
		if parts, err = s.PSetOp(ctx, sessions.PSetOpSplit, []string{worldSet}, mpi.NewInfo(sessions.PartSizes, "1,1")); err != nil {
			return err
		}
	}
	if parts.Out, err = sharedNames(world, parts.Out); err != nil {
		return err
	}
	mine, in := parts.Out[world.Rank()], parts.Out[0]
	if world.Rank() == 0 {
		if asked, err = s.PSetOp(ctx, sessions.PSetOpGrow, []string{in}, mpi.NewInfo(sessions.ProcsAdd, "1")); err != nil {
			return err
		}
	}
	var x sessions.PSetOperation
	for x.Op == sessions.PSetOpNull {
		if x, err = s.QueryPSetOp(ctx, mine, in); err != nil {
			return err
		}
	}
	if err := world.Barrier(); err != nil { // both were told
		return err
	}
	if world.Rank() == 0 {
		if err := publish(s, asked.Out[0], "main_pset", ""); err != nil { // the newcomer dies
			return err
		}
	}
	for y := x; y.Op != sessions.PSetOpNull; {
		if y, err = s.QueryPSetOp(ctx, mine, in); err != nil && !errors.Is(err, sessions.ErrRolledBack) {
			return err
		}
	}
	for _, set := range append(x.Out, in) {
		if err := wrongly("finalized what does not happen", s.FinalizePSetOp(ctx, set), sessions.ErrRolledBack); err != nil {
			return fmt.Errorf("%s: %w", set, err)
		}
	}
	return world.Barrier()
}
