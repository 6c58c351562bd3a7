// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gompi/internal/test/scenes"
	"gompi/mam"
	"gompi/mpi"
)

var errUnwilling = errors.New("the phase cannot be done")

// failing says where the part of one process fails in the first change of a program of three
// ranks.
type failing struct {
	to     int      // ranks after that change
	role   mam.Role // of the process whose user function fails
	calls  int      // of the user function before
	length bool     // instead, a variable of rank 1 has another length
	dies   bool     // the process dies right afterwards
}

func (f *failing) fails(u *mam.User) bool {
	rank := map[mam.Role]int{mam.Continue: 1, mam.Leaver: 2, mam.NewRank: 3}[f.role]
	return !f.length && u.ND == f.to && u.Role == f.role && u.Comm.Rank() == rank
}

// atOnce is how long the roll-back of a declined change takes at most, on a slow machine, too.
// The deadline of the votes is a minute.
const atOnce = 20 * time.Second

// declined: the part of one process fails in the first change. All others find at once that it
// does not happen, everything is what it was, and the next change happens.
func declined(config mam.Config, f failing) func(context.Context, *mpi.Comm) error {
	return func(ctx context.Context, world *mpi.Comm) error {
		d := new(whole)
		calls := 0
		user := func(u *mam.User) error {
			if calls++; calls > f.calls {
				if f.fails(u) {
					return errUnwilling
				}
				u.Resume()
			}
			return u.Comm.Barrier() // others wait for who has failed
		}
		m, role, err := mam.Init(ctx, world, config, user)
		if role == mam.Target && errors.Is(err, errUnwilling) {
			scenes.Die(ctx) // the change has ended before
		}
		if err != nil {
			return err
		}
		defer m.Finalize()
		if err := d.register(m); err != nil {
			return err
		}
		size, rolled := m.Comm().Size(), 0
		if role == mam.Target {
			rolled = 1
		}
		for next := 6 - f.to; m.Comm().Size() != next; {
			if err := d.check(m, m.Iteration()); err != nil {
				return err
			}
			d.compute()
			target := f.to
			if rolled > 0 {
				target = next
			}
			if err := m.SetTarget(target); err != nil {
				return err
			}
			x, short := d.x, f.length && rolled == 0 && m.Comm().Rank() == 1
			if short {
				d.x = x[1:]
			}
			was, began := m.State(), time.Now()
			state, err := m.Checkpoint(mam.Check)
			if short {
				d.x = x
			}
			failed := errors.Is(err, errUnwilling) || short && errors.Is(err, mpi.ErrCount)
			if failed && f.dies {
				scenes.Die(ctx)
			}
			// Rank 0 may have asked for the same once more before it knew.
			happens := state == mam.Completed && (m.Comm().Size() == next || rolled > 0)
			if err != nil && !failed || failed && state != mam.NotStarted || state == mam.Completed && !happens {
				return fmt.Errorf("%v, %d ranks: %w", state, m.Comm().Size(), err)
			}
			if took := time.Since(began); took > atOnce {
				return fmt.Errorf("a Checkpoint has taken %v", took)
			}
			seen := 0
			if failed || state == mam.NotStarted && (was != mam.NotStarted || calls > 0) {
				seen, calls = 1, 0
			}
			if happens {
				size, calls = m.Comm().Size(), 0
				continue
			}
			// Who has failed may be the first to know.
			seen, err = mpi.AllreduceOne(m.Comm(), seen, mpi.Max)
			if err != nil && f.dies { // the third may have ended, too
				return d.check(m, m.Iteration())
			}
			if err != nil {
				return err
			}
			if rolled = max(rolled, seen); m.Comm().Size() != size {
				return fmt.Errorf("%d ranks", m.Comm().Size())
			}
		}
		if rolled == 0 {
			return errors.New("nothing was rolled back")
		}
		if err := d.check(m, m.Iteration()); err != nil {
			return err
		}
		return m.Finalize()
	}
}
