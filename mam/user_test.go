// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gompi/internal/test/scenes"
	"gompi/mam"
	"gompi/mpi"
)

// phases is a loop whose user function takes several calls, of which all processes make
// as many: newcomers, too. (In the published module a new rank calls it once.)
func phases(wait mam.Completion) func(context.Context, *mpi.Comm) error {
	const calls = 3
	return func(ctx context.Context, world *mpi.Comm) error {
		var m *mam.Module
		made, size, changed, rank := 0, 0, 0, -1
		user := func(u *mam.User) error {
			made++
			if made > calls {
				return fmt.Errorf("call %d of the user function", made)
			}
			sum, err := mpi.AllreduceOne(u.Comm, 1<<(8*u.Role), mpi.Sum)
			if err != nil {
				return err
			}
			come := max(0, u.ND-u.NS)
			if want := min(u.NS, u.ND)<<(8*mam.Continue) + come<<(8*mam.NewRank) + max(0, u.NS-u.ND)<<(8*mam.Leaver); sum != want {
				return fmt.Errorf("from %d to %d ranks: roles %#x, want %#x", u.NS, u.ND, sum, want)
			}
			me := u.Comm.Rank()
			if len(u.Sources) != u.NS || len(u.Targets) != u.ND || slices.Contains(u.Sources, me) != (u.Role != mam.NewRank) || slices.Contains(u.Targets, me) != (u.Role != mam.Leaver) {
				return fmt.Errorf("rank %d, %v, of sources %v and targets %v", me, u.Role, u.Sources, u.Targets)
			}
			size, rank = u.ND, slices.Index(u.Targets, me)
			if made == calls && (u.Comm.Rank() < u.NS || u.Role == mam.NewRank) {
				u.Resume()
			}
			return nil
		}
		m, role, err := mam.Init(ctx, world, mam.Config{}, user)
		if err != nil {
			return err
		}
		defer m.Finalize()
		var x []int
		l := mam.Block(100)
		if role == mam.Source {
			fill(m, &x, l, func(i int) int { return i })
		} else if made != calls || m.State() != mam.NotStarted {
			return fmt.Errorf("a newcomer has called the user function %d times, %v", made, m.State())
		}
		if err := mam.Distributed(m, "x", &x, l); err != nil {
			return err
		}
		made = 0
		sizes := []int{5, 1, 3}
		at := 0
		if role == mam.Target {
			at = slices.Index(sizes, m.Comm().Size()) + 1
		}
		for at < len(sizes) {
			if n, err := mpi.AllreduceOne(m.Comm(), m.Iteration(), mpi.Max); err != nil || n != m.Iteration() {
				return fmt.Errorf("iteration %d beside %d: %w", m.Iteration(), n, err)
			}
			for i := range x {
				x[i]++
			}
			if err := m.SetTarget(sizes[at]); err != nil {
				return err
			}
			before := m.Iteration()
			state, err := m.Checkpoint(wait)
			if err != nil {
				return err
			}
			if m.Iteration() != before+1 {
				return fmt.Errorf("iteration %d, then %d", before, m.Iteration())
			}
			switch {
			case state == mam.UserPending && wait == mam.Check && made > 0 && made < calls:
			case state == mam.Completed && made == calls && m.Comm().Size() == size && m.Comm().Rank() == rank:
				made, changed = 0, changed+1
				at++
			case made == 0 && (state == mam.NotStarted || state == mam.Pending):
			default:
				return fmt.Errorf("%v after %d calls of the user function, %d ranks", state, made, m.Comm().Size())
			}
			if err := is(m, "x", x, func(i int) int { return i + m.Iteration() }); err != nil {
				return err
			}
		}
		if wait == mam.Wait && m.Iteration() != len(sizes) {
			return fmt.Errorf("%d checkpoints that waited, of %d changes", m.Iteration(), len(sizes))
		}
		return m.Finalize()
	}
}

// parted: a leaver dies in the user phase of a change by which nobody comes. That ends the
// collectives of the others, but not the receive of one that waits for a rank which lives: the
// roll-back ends it.
func parted(ctx context.Context, world *mpi.Comm) error {
	calls := 0
	user := func(u *mam.User) error {
		calls++
		switch u.Comm.Rank() {
		case 1:
			_, _, err := mpi.RecvOne[int](u.Comm, 2, 0)
			if !errors.Is(err, mpi.ErrRevoked) || !errors.Is(err, mpi.ErrRolledBack) {
				return fmt.Errorf("a receive in a change that is rolled back: %w", err)
			}
			return err
		case 3:
			scenes.Die(ctx)
		}
		return u.Comm.Barrier()
	}
	m, _, err := mam.Init(ctx, world, mam.Config{Method: mam.P2P, Strategy: mam.Blocking}, user)
	if err != nil {
		return err
	}
	defer m.Finalize()
	if err := m.SetTarget(2); err != nil {
		return err
	}
	state, err := m.Checkpoint(mam.Wait)
	if state != mam.NotStarted || err != nil || calls != 1 {
		return fmt.Errorf("%v after %d calls of the user function: %w", state, calls, err)
	}
	return m.Finalize()
}

// killed: a newcomer dies in the user phase. The change is rolled back, all data is what
// it was, and the next changes come.
func killed(config mam.Config) func(context.Context, *mpi.Comm) error {
	return killedOf(config, func() data { return new(whole) })
}

func killedOf(config mam.Config, of func() data) func(context.Context, *mpi.Comm) error {
	return func(ctx context.Context, world *mpi.Comm) error {
		d := of()
		rolled := 0
		var m *mam.Module
		user := func(u *mam.User) error {
			if u.ND == 5 && u.Role == mam.NewRank && u.Comm.Rank() == 4 {
				scenes.Die(ctx)
			}
			u.Resume()
			return u.Comm.Barrier()
		}
		m, role, err := mam.Init(ctx, world, config, user)
		if err != nil {
			return err
		}
		defer m.Finalize()
		if err := d.register(m); err != nil {
			return err
		}
		for m.Comm().Size() != 2 {
			if err := d.check(m, m.Iteration()); err != nil {
				return err
			}
			if err := m.Comm().Barrier(); err != nil {
				return err
			}
			d.compute()
			target := 5
			switch {
			case m.Comm().Size() == 4:
				target = 2
			case rolled > 0:
				target = 4
			}
			if err := m.SetTarget(target); err != nil {
				return err
			}
			was := m.State()
			state, err := m.Checkpoint(mam.Check)
			if err != nil {
				return err
			}
			if was != mam.NotStarted && state == mam.NotStarted {
				rolled++
			}
		}
		if role == mam.Source && rolled == 0 {
			return errors.New("nothing was rolled back")
		}
		if err := d.check(m, m.Iteration()); err != nil {
			return err
		}
		return m.Finalize()
	}
}
