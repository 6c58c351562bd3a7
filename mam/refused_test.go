// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

func wantError(t testing.TB, err error, class mpi.Class, text string) {
	t.Helper()
	if !errors.Is(err, class) || !strings.Contains(fmt.Sprint(err), text) {
		t.Errorf("%v, want %v with %q", err, class, text)
	}
}

// What cannot be registered is refused, with names and numbers.
func TestRegisterRefuses(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		if _, _, err := mam.Init(t.Context(), world, mam.Config{Method: mam.InPlace + 1}, nil); !errors.Is(err, mpi.ErrArg) {
			t.Error(err) // on all ranks
		}
		m, role, err := mam.Init(t.Context(), world, mam.Config{}, nil)
		if err != nil || role != mam.Source {
			t.Fatal(role, err)
		}
		x, one := make([]int32, 5), 3
		l := mam.Block(10)
		wantError(t, mam.Distributed(m, "", &x, l), mpi.ErrArg, "a name of 0 bytes")
		wantError(t, mam.Distributed[int32](m, "x", nil, l), mpi.ErrArg, "no variable")
		wantError(t, mam.Distributed(m, "x", &x, mam.Block(22)), mpi.ErrCount, fmt.Sprintf(`"x" has 5 elements on rank %d, where its layout has 11`, world.Rank()))
		wantError(t, mam.Distributed(m, "x", &x, mam.BlockCyclic(10, 0)), mpi.ErrArg, "blocks of 0")
		wantError(t, mam.Distributed(m, "x", &x, l, mam.Constant, mam.Variable), mpi.ErrArg, "modes")
		wantError(t, mam.Distributed(m, "x", &x, l, 3), mpi.ErrArg, "modes")
		wantError(t, mam.Distributed(m, "strings", new([]string), mam.Block(0)), mpi.ErrType, "strings")
		wantError(t, mam.Distributed(m, "empty", new([]struct{}), mam.Block(0)), mpi.ErrType, "no bytes")
		wantError(t, mam.ReplicatedOne[int](m, "one", nil), mpi.ErrArg, "no variable")
		wantError(t, mam.Distributed(m, "large", new([]int), mam.Weighted(0, make([]int, 200_000)...)), mpi.ErrArg, "none of them above 0")
		many := make([]int, 200_000)
		for i := range many {
			many[i] = 1
		}
		rows := make([]byte, mam.Rows(many).Count(2, world.Rank()))
		if err := mam.Distributed(m, "large", &rows, mam.Rows(many)); err != nil { // weights as long as they need
			t.Error(err)
		}
		if err := mam.Distributed(m, "x", &x, l); err != nil {
			t.Error(err)
		}
		wantError(t, mam.Distributed(m, "x", &x, l), mpi.ErrArg, "registered already")
		wantError(t, mam.ReplicatedOne(m, "x", &one), mpi.ErrArg, "registered already")
		wantError(t, m.SetTarget(0), mpi.ErrArg, "0 ranks")
		if _, err := m.Checkpoint(2); !errors.Is(err, mpi.ErrArg) {
			t.Error(err)
		}
		if s := m.State(); s != mam.NotStarted || s.String() != "NOT_STARTED" {
			t.Error(s)
		}
		if err := m.Finalize(); err != nil {
			t.Error(err)
		}
		if err := m.Finalize(); err != nil {
			t.Error(err)
		}
		_, err = m.Checkpoint(mam.Check)
		wantError(t, err, mpi.ErrFinalized, "finalized")
		wantError(t, mam.Distributed(m, "y", &x, l), mpi.ErrFinalized, "finalized")
		if s := m.State(); s != mam.Unreserved || (*mam.Module)(nil).State() != s {
			t.Error(s)
		}
	})
}

// A newcomer is handed what it asks for by the name, type, kind and layout with which it
// was registered, and nothing else.
func TestHandOverRefuses(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		m, role, err := mam.Init(t.Context(), world, mam.Config{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Finalize()
		l, step := mam.Block(10), 7
		var x []int32
		if role == mam.Source {
			fill(m, &x, l, func(i int) int32 { return int32(i) })
			if err := errors.Join(mam.Distributed(m, "x", &x, l), mam.ReplicatedOne(m, "step", &step)); err != nil {
				t.Fatal(err)
			}
			if err := m.SetTarget(3); err != nil {
				t.Fatal(err)
			}
			for m.Comm().Size() != 3 {
				if _, err := m.Checkpoint(mam.Wait); err != nil {
					t.Fatal(err)
				}
			}
		} else {
			wantError(t, mam.Distributed(m, "z", &x, l), mpi.ErrArg, `no data "z" has come`)
			wantError(t, mam.Distributed(m, "x", new([]int64), l), mpi.ErrType, "int32 (4 bytes), not int64 (8)")
			wantError(t, mam.Distributed(m, "x", new([]uint32), l), mpi.ErrType, "int32")
			wantError(t, mam.Distributed(m, "x", &x, mam.Block(11)), mpi.ErrArg, "layout")
			wantError(t, mam.Distributed(m, "x", &x, l, mam.Constant), mpi.ErrArg, "distributed variable data, not distributed constant data")
			wantError(t, mam.Replicated(m, "x", &x), mpi.ErrArg, "not replicated")
			step = 0
			if err := errors.Join(mam.Distributed(m, "x", &x, l), mam.ReplicatedOne(m, "step", &step)); err != nil {
				t.Fatal(err)
			}
		}
		if err := is(m, "x", x, func(i int) int32 { return int32(i) }); err != nil || step != 7 {
			t.Error(step, err)
		}
		if err := m.Comm().Barrier(); err != nil {
			t.Error(err)
		}
	})
}

// A Checkpoint that asks for what is refused says so on rank 0, and counts there as on the
// others, which wait for nobody in vain; the next change is handed out in one iteration.
func TestRefusedTargetCounts(t *testing.T) {
	for _, config := range []mam.Config{{}, {Spawn: mam.SpawnAll}} {
		for _, how := range []mam.Completion{mam.Check, mam.Wait} {
			mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
				m, role, err := mam.Init(t.Context(), world, config, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer m.Finalize()
				for k := 0; role == mam.Source && k < 2; k++ {
					if err := m.SetTarget(1 << 20); err != nil {
						t.Fatal(err)
					}
					switch _, err := m.Checkpoint(how); {
					case world.Rank() == 0:
						wantError(t, err, mpi.ErrArg, "1048576")
					case err != nil:
						t.Fatal(err)
					}
					if got := m.Iteration(); got != k+1 {
						t.Errorf("iteration %d after %d calls", got, k+1)
					}
				}
				if err := m.SetTarget(4); err != nil {
					t.Fatal(err)
				}
				for m.Comm().Size() != 4 {
					if _, err := m.Checkpoint(how); err != nil {
						t.Fatal(err)
					}
				}
				least, err := mpi.AllreduceOne(m.Comm(), m.Iteration(), mpi.Min)
				if err != nil || least != m.Iteration() {
					t.Errorf("iteration %d beside %d: %v", m.Iteration(), least, err)
				}
			})
		}
	}
}

// Ranks that have registered different data are told so, by the change that finds it: where
// data moves before it is handed out, then, and also a Checkpoint that waits for it.
func TestDifferentRegistrations(t *testing.T) {
	for _, config := range []mam.Config{{}, {Method: mam.COL, Strategy: mam.WaitDrains}, {Method: mam.P2P, Strategy: mam.NonBlocking}, {Method: mam.RMALock, Strategy: mam.Thread}} {
		for _, how := range []mam.Completion{mam.Check, mam.Wait} {
			mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
				m, _, err := mam.Init(t.Context(), world, config, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer m.Finalize()
				step := 1
				if world.Rank() == 1 {
					err = mam.ReplicatedOne(m, "other", &step)
				} else {
					err = mam.ReplicatedOne(m, "step", &step)
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := m.SetTarget(2); err != nil {
					t.Fatal(err)
				}
				for err == nil {
					_, err = m.Checkpoint(how)
				}
				wantError(t, err, mpi.ErrMismatch, "rank 1 of 3 has registered other data")
				if err := world.Barrier(); err != nil { // who ends it ends it for all
					t.Error(err)
				}
			})
		}
	}
}

// Data that is registered while a change is under way is refused; in the user phase, too.
func TestRegisterDuringChange(t *testing.T) {
	mpitest.Run(t, 1, func(t *mpitest.T, world *mpi.Comm) {
		var m *mam.Module
		user := func(u *mam.User) error {
			if u.Role == mam.Continue {
				wantError(t, mam.ReplicatedOne(m, "late", new(int)), mpi.ErrArg, "a change is under way")
				if err := mam.ReplicatedOne(m, "later", new(int)); !errors.Is(err, mam.ErrChanging) {
					t.Error(err)
				}
			}
			u.Resume()
			return nil
		}
		var err error
		if m, _, err = mam.Init(t.Context(), world, mam.Config{Targets: 2}, user); err != nil {
			t.Fatal(err)
		}
		for m.Comm().Size() != 2 {
			if _, err := m.Checkpoint(mam.Wait); err != nil {
				t.Fatal(err)
			}
		}
		// Before the first Checkpoint of the new set all register something new.
		if m.Role() == mam.Source {
			if err := mam.ReplicatedOne(m, "new", new(int)); err != nil {
				t.Error(err)
			}
		}
		if err := m.Finalize(); err != nil {
			t.Error(err)
		}
	})
}

// An error of the user function of a newcomer ends the change, and nothing else.
func TestUserFails(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		bad := errors.New("no")
		called := false
		user := func(u *mam.User) error {
			called = true
			u.Resume()
			if u.Role == mam.NewRank {
				return bad
			}
			return nil
		}
		m, role, err := mam.Init(t.Context(), world, mam.Config{Targets: 3}, user)
		if role == mam.Target {
			if !errors.Is(err, bad) && !errors.Is(err, mpi.ErrRolledBack) {
				t.Error(err)
			}
			t.Kill(-1) // a process whose main function has returned an error ends
		}
		if err != nil {
			t.Fatal(err)
		}
		// The newcomer may have failed before one of these was in the user phase.
		for some, coming := 0, false; some == 0; {
			state, err := m.Checkpoint(mam.Check)
			if err != nil || state == mam.Completed {
				t.Fatal(state, err)
			}
			mine := 0
			if called || coming && state == mam.NotStarted {
				mine = 1
			}
			coming = state != mam.NotStarted
			if some, err = mpi.AllreduceOne(m.Comm(), mine, mpi.Max); err != nil {
				t.Fatal(err)
			}
		}
		if m.Comm().Size() != 2 {
			t.Errorf("%d ranks", m.Comm().Size())
		}
		if err := m.Finalize(); err != nil {
			t.Error(err)
		}
	})
}
