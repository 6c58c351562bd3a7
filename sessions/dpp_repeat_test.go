// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"fmt"
	"slices"

	"gompi/mpi"
	"gompi/sessions"
)

// dppAgain: a set lives on when an operation on it is complete. A query of it gives NULL
// then, or the next operation, the same on all; and it is the input of several operations,
// one after the other, of which two are asked for at once.
func dppAgain(ctx context.Context, s *sessions.Session, world *mpi.Comm) error {
	main, err := s.Main()
	if err != nil {
		return err
	}
	one := mpi.NewInfo(sessions.ProcsAdd, "1")
	round := func(step int, asked sessions.PSetOperation) error {
		byNewcomer := step == 1
		if world.Rank() == 0 {
			value := asked.Out[1]
			if byNewcomer {
				value += dppCompletes
			}
			if err := publish(s, asked.Out[0], "main_pset", value); err != nil {
				return err
			}
		}
		x, err := dppTold(ctx, s, world, main)
		if err != nil || x.Op != sessions.PSetOpGrow || world.Rank() == 0 && !slices.Equal(asked.Out, x.Out) {
			return fmt.Errorf("step %d: asked for %+v, told of %+v: %w", step, asked, x, err)
		}
		if i, err := s.Info(x.Out[1]); err != nil || i.Size != 4 {
			return fmt.Errorf("step %d: the result is %+v: %w", step, i, err)
		}
		switch {
		case byNewcomer: // when all were told
			if err := s.Barrier(ctx, x.Out[1]); err != nil {
				return err
			}
		case world.Rank() == step%3: // whoever
			if err := s.FinalizePSetOp(ctx, main); err != nil {
				return err
			}
		}
		return s.Barrier(ctx, x.Out[1]) // with the newcomer
	}
	for step := range 3 {
		var asked sessions.PSetOperation
		if world.Rank() == 0 {
			if asked, err = s.PSetOp(ctx, sessions.PSetOpGrow, []string{main}, one); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
		if err := round(step, asked); err != nil {
			return err
		}
		if err := world.Barrier(); err != nil {
			return err
		}
		for range 2 {
			if x, err := s.QueryPSetOp(ctx, main, main); err != nil || x.Op != sessions.PSetOpNull {
				return fmt.Errorf("step %d: after it was completed: %+v, %w", step, x, err)
			}
		}
		if x, err := s.QueryPSetOp(ctx, "mpi://SELF", main); err != nil || x.Op != sessions.PSetOpNull {
			return fmt.Errorf("step %d: by one alone, after it was completed: %+v, %w", step, x, err)
		}
		// A query by one alone is answered at once: who asks first for the next operation
		// waits for those of the others.
		if err := world.Barrier(); err != nil {
			return err
		}
	}
	var both [2]*sessions.PSetOperation
	var granted [2]mpi.Request
	if world.Rank() == 0 {
		for i := range both {
			both[i], granted[i] = s.IPSetOp(ctx, sessions.PSetOpGrow, []string{main}, one)
		}
	}
	for i := range both { // the second is granted when the first is complete
		var asked sessions.PSetOperation
		if world.Rank() == 0 {
			if _, err := granted[i].Wait(); err != nil {
				return fmt.Errorf("operation %d of two: %w", i, err)
			}
			asked = *both[i]
		}
		if err := round(i, asked); err != nil {
			return fmt.Errorf("operation %d of two: %w", i, err)
		}
	}
	// Its last member leaves: who stays is told of the next one, too.
	if world.Rank() == 0 {
		if _, err := s.PSetOp(ctx, sessions.PSetOpShrink, []string{main}, mpi.NewInfo(sessions.ProcsSub, "1")); err != nil {
			return err
		}
	}
	x, err := dppTold(ctx, s, world, main)
	if err != nil || x.Op != sessions.PSetOpShrink {
		return fmt.Errorf("told of %+v: %w", x, err)
	}
	leaves, err := hint(s, x.Out[0], "mpi_included")
	if err != nil || leaves {
		return err
	}
	if world.Rank() == 0 {
		if err := s.FinalizePSetOp(ctx, x.Out[1]); err != nil {
			return err
		}
	}
	if err := s.Barrier(ctx, x.Out[1]); err != nil {
		return err
	}
	for x.Op != sessions.PSetOpNull && err == nil {
		x, err = s.QueryPSetOp(ctx, main, main)
	}
	return err
}
