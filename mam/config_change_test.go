// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

// stage is a size that a program goes through, and the configuration by which it comes to
// it.
type stage struct {
	size   int
	config mam.Config
}

var stages = []stage{
	{5, mam.Config{Method: mam.Pull}},
	{2, mam.Config{Method: mam.RMALockall}},
	{4, mam.Config{Method: mam.P2P}},
	{1, mam.Config{Method: mam.Pull, Strategy: mam.Blocking}},
	{3, mam.Config{Method: mam.Pull}},
}

// setters: between changes the program takes another configuration, and other data under
// a name that it had: another variable, another number of elements, another type. While
// a change is under way that is an error, on all.
func setters(ctx context.Context, world *mpi.Comm) error {
	var m *mam.Module
	changing := func(m *mam.Module) error {
		for _, err := range []error{m.SetConfig(mam.Config{}), m.Unregister("x")} {
			if !errors.Is(err, mam.ErrChanging) || !errors.Is(err, mpi.ErrArg) {
				return fmt.Errorf("%v: set during a change: %w", m.State(), err)
			}
		}
		return nil
	}
	user := func(u *mam.User) error {
		u.Resume()
		if u.Role == mam.NewRank {
			return nil
		}
		return changing(m)
	}
	m, role, err := mam.Init(ctx, world, mam.Config{Method: mam.COL}, user)
	if err != nil {
		return err
	}
	defer m.Finalize()
	odd := func(i int) int32 { return int32(2*i + 1) }
	even := func(i int) float64 { return float64(2 * i) }
	var x []int32
	var y []float64
	// What x is when stage k is reached.
	register := func(k int) error {
		l := mam.Block(100 + 50*k)
		if k%2 == 0 {
			fill(m, &x, l, odd)
			return mam.Distributed(m, "x", &x, l, mam.Constant)
		}
		fill(m, &y, l, even)
		return mam.Distributed(m, "x", &y, l)
	}
	k := 0
	if role == mam.Target {
		k = slices.IndexFunc(stages, func(s stage) bool { return s.size == m.Comm().Size() })
		l := mam.Block(100 + 50*k)
		if k%2 == 0 {
			err = mam.Distributed(m, "x", &x, l, mam.Constant)
		} else {
			err = mam.Distributed(m, "x", &y, l)
		}
		if err != nil {
			return err
		}
		k++
	}
	for ; ; k++ {
		if k > 0 {
			s := stages[k-1]
			if got := m.Config(); got.Method != s.config.Method || got.Strategy != s.config.Strategy {
				return fmt.Errorf("stage %d: configuration %+v", k, got)
			}
			if (k-1)%2 == 0 {
				err = is(m, "x", x, odd)
			} else {
				err = is(m, "x", y, even)
			}
			if err != nil {
				return err
			}
		}
		if k == len(stages) {
			return m.Finalize()
		}
		if err := m.SetConfig(stages[k].config); err != nil {
			return err
		}
		if k > 0 {
			if err := m.Unregister("x"); err != nil {
				return err
			}
		}
		if err := register(k); err != nil {
			return err
		}
		if err := m.SetTarget(stages[k].size); err != nil {
			return err
		}
		for {
			state, err := m.Checkpoint(mam.Check)
			if err != nil {
				return err
			}
			if state == mam.Completed {
				break // newcomers do not do what follows
			}
			any, err := mpi.AllreduceOne(m.Comm(), state, mpi.Max)
			if err == nil && any == mam.Pending {
				err = changing(m)
			}
			if err != nil {
				return err
			}
		}
		t := m.Times()
		if grew := t.ND > t.NS; t.RMS < 0 || t.Spawn < 0 || (t.Spawn > 0) != (grew && role == mam.Source && m.Comm().Rank() == 0) {
			return fmt.Errorf("rank %d, role %v: times %+v", m.Comm().Rank(), role, t)
		}
	}
}

// Who says something wrong ends it for all, and changes nothing.
func TestSettersRefuse(t *testing.T) {
	mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
		m, _, err := mam.Init(t.Context(), world, mam.Config{Method: mam.P2P}, nil)
		if err != nil {
			t.Fatal(err)
		}
		one, name := 1, "one"
		if err := mam.ReplicatedOne(m, name, &one); err != nil {
			t.Fatal(err)
		}
		for range 2 { // before the first Checkpoint, and after it
			if err := m.SetConfig(mam.Config{Method: mam.InPlace + 1}); !errors.Is(err, mpi.ErrArg) {
				t.Error(err)
			}
			if c := m.Config(); c != (mam.Config{Method: mam.P2P}) {
				t.Errorf("%+v", c)
			}
			if world.Rank() == 1 {
				name = "none"
			}
			if err := m.Unregister(name); world.Rank() == 1 {
				wantError(t, err, mpi.ErrArg, `no data "none"`)
			} else {
				wantError(t, err, mpi.ErrAborted, "another rank")
			}
			if err := mam.ReplicatedOne(m, "one", &one); !errors.Is(err, mpi.ErrArg) {
				t.Errorf("forgotten: %v", err)
			}
			if s, err := m.Checkpoint(mam.Check); s != mam.NotStarted || err != nil {
				t.Error(s, err)
			}
			name = "one"
		}
		if err := m.Unregister("one"); err != nil {
			t.Error(err)
		}
		if err := mam.ReplicatedOne(m, "one", new(string)); !errors.Is(err, mpi.ErrType) {
			t.Error(err)
		}
		if err := mam.ReplicatedOne(m, "one", new(float32)); err != nil {
			t.Error(err)
		}
		if err := m.Finalize(); err != nil {
			t.Error(err)
		}
		wantError(t, m.SetConfig(mam.Config{}), mpi.ErrFinalized, "finalized")
		wantError(t, m.Unregister("one"), mpi.ErrFinalized, "finalized")
	})
}
