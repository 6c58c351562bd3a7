// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gompi/mpi"
	"gompi/sessions"
)

// wrongly reports that an error is not of a class.
func wrongly(what string, err error, class error) error {
	if !errors.Is(err, class) {
		return fmt.Errorf("%s: %w, want %v", what, err, class)
	}
	return nil
}

// dppAlgebra: unions and the like, and what is no operation.
func dppAlgebra(ctx context.Context, world *mpi.Comm) error {
	s, err := sessions.Open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	size := func(name string) int { g, _ := s.Group(name); return g.Size() }
	halves, err := s.PSetOp(ctx, sessions.PSetOpSplit, []string{worldSet}, mpi.NewInfo(sessions.PartSizes, "1, 3"))
	if err != nil || halves.Op != sessions.PSetOpSplit || len(halves.Out) != 2 || size(halves.Out[0]) != 1 || size(halves.Out[1]) != 3 {
		return fmt.Errorf("split: %+v, %w", halves, err)
	}
	for _, step := range []struct {
		op   sessions.PSetOp
		in   []string
		size int
	}{
		{sessions.PSetOpUnion, halves.Out, 4},
		{sessions.PSetOpDifference, []string{worldSet, halves.Out[0]}, 3},
		{sessions.PSetOpIntersection, []string{worldSet, halves.Out[1], halves.Out[0]}, 0},
	} {
		x, r := s.IPSetOp(ctx, step.op, step.in, nil)
		if _, err := r.Wait(); err != nil || x.Op != step.op || len(x.Out) != 1 || size(x.Out[0]) != step.size {
			return fmt.Errorf("%v: %+v, %w", step.op, x, err)
		}
	}
	middle, err := s.PSetOp(ctx, sessions.PSetOpSplit, []string{worldSet}, mpi.NewInfo(sessions.PartSizes, "1,0,2"))
	if err != nil || len(middle.Out) != 3 || size(middle.Out[0]) != 1 || size(middle.Out[1]) != 0 || size(middle.Out[2]) != 2 {
		return fmt.Errorf("split below the whole: %+v, %w", middle, err)
	}
	world2 := []string{worldSet}
	for _, wrong := range []struct {
		op    sessions.PSetOp
		in    []string
		info  *mpi.Info
		class error
	}{
		{sessions.PSetOpNull, world2, nil, mpi.ErrArg},
		{sessions.PSetOpMulti, world2, nil, mpi.ErrArg},
		{13, world2, nil, mpi.ErrArg},
		{sessions.PSetOpSplit, world2, nil, mpi.ErrArg},
		{sessions.PSetOpSplit, world2, mpi.NewInfo(sessions.PartSizes, "1,x"), mpi.ErrArg},
		{sessions.PSetOpSplit, world2, mpi.NewInfo(sessions.PartSizes, "4,1"), mpi.ErrRefused},
		{sessions.PSetOpAdd, world2, mpi.NewInfo(sessions.ProcsAdd, "3", sessions.PartSizes, "1,1"), mpi.ErrArg},
		{sessions.PSetOpAdd, world2, mpi.NewInfo(sessions.ProcsAdd, "1,0"), mpi.ErrRefused},
		{sessions.PSetOpGrow, world2, nil, mpi.ErrRefused},
		{sessions.PSetOpGrow, world2, mpi.NewInfo(sessions.ProcsAdd, "2 or 3"), mpi.ErrArg},
		{sessions.PSetOpGrow, world2, mpi.NewInfo(sessions.ProcsAdd, "-1"), mpi.ErrArg},
		{sessions.PSetOpGrow, []string{"app://none"}, mpi.NewInfo(sessions.ProcsAdd, "1"), mpi.ErrSet},
		{sessions.PSetOpShrink, world2, mpi.NewInfo(sessions.ProcsSub, "5"), mpi.ErrRefused},
		{sessions.PSetOpCancel, world2, nil, mpi.ErrRefused},
		{sessions.PSetOpCancel, nil, nil, mpi.ErrArg},
	} {
		x, err := s.PSetOp(ctx, wrong.op, wrong.in, wrong.info)
		if err := wrongly(fmt.Sprintf("%v of %q with %v", wrong.op, wrong.in, wrong.info), err, wrong.class); err != nil || x.Op != sessions.PSetOpNull && wrong.op != sessions.PSetOpCancel && wrong.op != sessions.PSetOpSplit {
			return fmt.Errorf("%+v: %w", x, err)
		}
		_, r := s.IPSetOp(ctx, wrong.op, wrong.in, wrong.info)
		if _, err := r.Wait(); !errors.Is(err, wrong.class) {
			return fmt.Errorf("%v, non-blocking: %w", wrong.op, err)
		}
	}
	if _, err := s.QueryPSetOp(ctx, worldSet, "app://none"); !errors.Is(err, mpi.ErrSet) {
		return wrongly("a query of no set", err, mpi.ErrSet)
	}
	if err := s.FinalizePSetOp(ctx, worldSet); !errors.Is(err, mpi.ErrArg) {
		return wrongly("nothing finalized", err, mpi.ErrArg)
	}
	return s.Barrier(ctx, worldSet)
}

// dppPlain: ADD and SUB leave their input as it is.
func dppPlain(ctx context.Context, world *mpi.Comm) error {
	s, err := sessions.Open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if dynamic, err := hint(s, worldSet, "mpi_dyn"); err != nil || dynamic {
		if err == nil && world.Rank() == 0 { // a newcomer may finalize, too
			if err = s.FinalizePSetOp(ctx, worldSet); errors.Is(err, mpi.ErrArg) {
				err = nil // one of another set of newcomers has
			}
		}
		if err == nil { // who ends before that takes it back
			err = s.Barrier(ctx, worldSet)
		}
		return err
	}
	for _, step := range []struct {
		op   sessions.PSetOp
		info *mpi.Info
		outs int
		size int // of the last
	}{
		{sessions.PSetOpAdd, mpi.NewInfo(sessions.ProcsAdd, "2"), 1, 2},
		{sessions.PSetOpAdd, mpi.NewInfo(sessions.ProcsAdd, "1,2"), 2, 2},
		{sessions.PSetOpAdd, mpi.NewInfo(sessions.ProcsAdd, "3", sessions.PartSizes, "1, 1, 1"), 3, 1},
		{sessions.PSetOpSub, mpi.NewInfo(sessions.ProcsSub, "1"), 1, 1},
	} {
		var asked sessions.PSetOperation
		if world.Rank() == 0 {
			if asked, err = s.PSetOp(ctx, step.op, []string{worldSet}, step.info); err != nil || len(asked.Out) != step.outs {
				return fmt.Errorf("%v: %+v, %w", step.op, asked, err)
			}
		}
		var x *sessions.PSetOperation
		for x == nil || x.Op == sessions.PSetOpNull {
			var r mpi.Request
			x, r = s.IQueryPSetOp(ctx, worldSet, worldSet)
			if _, err := r.Wait(); err != nil {
				return err
			}
			if err := world.Barrier(); err != nil { // the calls of one number agree
				return err
			}
		}
		if i, err := s.Info(x.Out[len(x.Out)-1]); err != nil || x.Op != step.op || i.Size != step.size || world.Rank() == 0 && !slices.Equal(asked.Out, x.Out) {
			return fmt.Errorf("asked for %+v, told of %+v, %+v: %w", asked, x, i, err)
		}
		if step.op == sessions.PSetOpSub && world.Rank() == 1 {
			if err := s.FinalizePSetOp(ctx, x.Out[0]); err != nil { // any of its sets will do
				return err
			}
		}
		if leaves, err := hint(s, x.Out[0], "mpi_included"); err != nil || leaves {
			return err
		}
		for x.Op != sessions.PSetOpNull { // until it is completed
			y, err := s.QueryPSetOp(ctx, worldSet, worldSet)
			if err != nil || y.Op != sessions.PSetOpNull && y.Out[0] != x.Out[0] {
				return fmt.Errorf("told of %+v after %+v: %w", y, x, err)
			}
			if *x = y; step.op == sessions.PSetOpAdd { // all are there, and stay in step
				if err := world.Barrier(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// dppSized: a size is found within bounds, and what is so already is over at once.
func dppSized(ctx context.Context, s *sessions.Session, world *mpi.Comm) (err error) {
	for _, step := range []struct {
		op   sessions.PSetOp
		info *mpi.Info
		size int // of the result; 0: it stays as it is
	}{
		{sessions.PSetOpReplace, nil, 0},
		{sessions.PSetOpMalleable, mpi.NewInfo(sessions.ProcsMin, "1"), 0},
		{sessions.PSetOpReplace, mpi.NewInfo(sessions.ProcsPref, "2"), 0},
		{sessions.PSetOpMalleable, mpi.NewInfo(sessions.ProcsMin, "1", sessions.ProcsMax, "4", sessions.ProcsPref, "3"), 4},
	} {
		var asked sessions.PSetOperation
		if world.Rank() == 0 {
			asked, err = s.PSetOp(ctx, step.op, []string{worldSet}, step.info)
			if err != nil || asked.Op != sessions.PSetOpReplace || len(asked.Out) != 3 || asked.Out[0] != "" || (asked.Out[1] == "") != (step.size == 0) {
				return fmt.Errorf("%v makes %+v: %w", step.op, asked, err)
			}
		}
		if step.size == 0 {
			if x, err := s.QueryPSetOp(ctx, worldSet, worldSet); err != nil || x.Op != sessions.PSetOpNull {
				return fmt.Errorf("told of %+v where nothing changes: %w", x, err)
			}
			continue
		}
		var x sessions.PSetOperation
		for x.Op == sessions.PSetOpNull {
			if x, err = s.QueryPSetOp(ctx, worldSet, worldSet); err != nil {
				return err
			}
		}
		if i, err := s.Info(x.Out[2]); err != nil || i.Size != step.size {
			return fmt.Errorf("%+v has %+v: %w", x, i, err)
		}
		if world.Rank() == 0 {
			if err := publish(s, x.Out[1], "main_pset", x.Out[2]); err != nil {
				return err
			}
			if err := s.FinalizePSetOp(ctx, x.Out[2]); err != nil {
				return err
			}
		}
		if err := s.Barrier(ctx, x.Out[2]); err != nil {
			return err
		}
	}
	return nil
}
