// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// A change that was handed out is rolled back before any source has begun with it: its sets
// are gone by then, and so is what has moved early.
func TestHandedLate(t *testing.T) {
	for _, config := range []mam.Config{
		{Method: mam.COL},
		{Method: mam.COL, Strategy: mam.WaitDrains},
		{Method: mam.Pull},
		{Method: mam.RMALock},
	} {
		t.Run(fmt.Sprint(config.Method, config.Strategy), func(t *testing.T) {
			mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) { handedLate(t, world, config) })
		})
	}
}

func handedLate(t *mpitest.T, world *mpi.Comm, config mam.Config) {
	c, err := sessions.Joined(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c != nil {
		go func() {
			_, _ = c.Iteration(t.Context()) // until a source was handed it
			t.Kill(-1)
		}()
	}
	m, _, err := mam.Init(t.Context(), world, config, nil)
	if c != nil {
		return // dead
	}
	if err != nil {
		t.Fatal(err)
	}
	var d whole
	if err := d.register(m); err != nil {
		t.Fatal(err)
	}
	if err := m.SetTarget(3); err != nil {
		t.Fatal(err)
	}
	// Who comes later than the roll-back is handed nothing.
	for over := 0; over == 0; {
		late := 0
		state, err := m.CheckpointLate(func(c *sessions.Change) {
			late = 1
			if committed, err := c.Decided(t.Context()); committed || err != nil {
				t.Errorf("committed %v: %v", committed, err)
			}
			m.TakenBack(c)
		})
		if err == nil && state != mam.Completed {
			err = d.check(m, 0)
		} else if err == nil {
			err = errors.New("it is completed")
		}
		if err != nil {
			t.Fatal(err)
		}
		if over, err = mpi.AllreduceOne(world, late, mpi.Max); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Finalize(); err != nil {
		t.Error(err)
	}
}

// A change comes and is rolled back before the first Checkpoint, so before anything is
// prepared for it: that is no error, and the next one is made.
func TestPreparedLate(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		m, role, err := mam.Init(t.Context(), world, mam.Config{Method: mam.COL, Strategy: mam.WaitDrains}, nil)
		if errors.Is(err, mpi.ErrRolledBack) {
			return // a newcomer
		}
		if err != nil {
			t.Fatal(err)
		}
		var d whole
		if err := d.register(m); err != nil {
			t.Fatal(err)
		}
		if role == mam.Source {
			for seen := 0; seen == 0; {
				if world.Rank() == 0 {
					rollBack(t)
				}
				if m.WasComing() {
					seen = 1
				}
				if seen, err = mpi.AllreduceOne(world, seen, mpi.Min); err != nil {
					t.Fatal(err)
				}
			}
			if err := m.SetTarget(3); err != nil {
				t.Fatal(err)
			}
		}
		for i := 0; m.Comm().Size() != 3; i++ {
			if _, err := m.Checkpoint(mam.Check); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(d.check(m, 0), m.Finalize()); err != nil {
			t.Error(err)
		}
	})
}

// rollBack asks for a change that has no time.
func rollBack(t *mpitest.T) {
	o, err := sessions.Submit(t.Context(), sessions.Request{
		Kind: sessions.Replace, In: []string{"gompi://main"}, Size: 1,
		Deadlines: sessions.Deadlines{Whole: 30 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Free()
	if x, err := o.Wait(t.Context()); err != nil || x.State != sessions.RolledBack {
		t.Errorf("what nobody takes up is %v: %v", x.State, err)
	}
}
