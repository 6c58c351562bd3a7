// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

// What is known to go wrong in the published module, as tests of this one. docs/porting.md
// says which test stands for which defect; those that are not here are beside what they are
// about.

// moved runs a program through sizes, the first of which it begins with: register and check
// are called on each rank, check after each change.
func moved(t *testing.T, config mam.Config, sizes []int, register func(m *mam.Module) error, check func(m *mam.Module) error) (leavers int) {
	t.Helper()
	var left atomic.Int32
	mpitest.Run(t, sizes[0], func(t *mpitest.T, world *mpi.Comm) {
		step := 0
		m, _, err := mam.Init(t.Context(), world, config, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Finalize()
		if err := errors.Join(register(m), mam.ReplicatedOne(m, "the step", &step)); err != nil {
			t.Fatal(err)
		}
		for {
			if err := check(m); err != nil {
				t.Fatalf("%d ranks, step %d: %v", m.Comm().Size(), step, err)
			}
			if step++; step == len(sizes) {
				return
			}
			if err := m.SetTarget(sizes[step]); err != nil {
				t.Fatal(err)
			}
			state, err := m.Checkpoint(mam.Wait)
			if errors.Is(err, mpi.ErrLeaving) {
				left.Add(1) // the program goes on behind the call, and returns
				return
			}
			if err != nil || state != mam.Completed && m.Comm().Size() != sizes[step] {
				t.Fatalf("to %d ranks: %v, %v", sizes[step], state, err)
			}
		}
	})
	return int(left.Load())
}

var defectConfigs = map[string]mam.Config{
	"col": {Method: mam.COL}, "p2p": {Method: mam.P2P}, "lock": {Method: mam.RMALock}, "lockall": {Method: mam.RMALockall, Strategy: mam.Thread},
	"pull": {Method: mam.Pull, Strategy: mam.WaitDrains}, "colnb": {Method: mam.COL, Strategy: mam.NonBlocking},
}

// Only replicated data: there is nothing to count for distributed data (defect c).
func TestOnlyReplicated(t *testing.T) {
	for name, config := range defectConfigs {
		t.Run(name, func(t *testing.T) {
			moved(t, config, []int{2, 4, 1, 3}, func(m *mam.Module) error {
				table := make([]float64, 3)
				if m.Role() == mam.Source {
					table = []float64{1, 2, 4}
				}
				err := mam.Replicated(m, "table", &table, mam.Constant)
				if fmt.Sprint(table) != "[1 2 4]" {
					err = errors.Join(err, fmt.Errorf("the table is %v", table))
				}
				return err
			}, func(*mam.Module) error { return nil })
		})
	}
}

// Fewer elements than ranks, and none, in each direction (defect b).
func TestFewerThanRanks(t *testing.T) {
	for name, config := range defectConfigs {
		for _, n := range []int{0, 1, 3} {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				all := mam.Block(n)
				type blocks struct{ x, y []int64 }
				data := map[*mam.Module]*blocks{}
				var mu sync.Mutex
				of := func(m *mam.Module) *blocks {
					mu.Lock()
					defer mu.Unlock()
					if data[m] == nil {
						data[m] = &blocks{}
					}
					return data[m]
				}
				moved(t, config, []int{4, 5, 2, 4}, func(m *mam.Module) error {
					b := of(m)
					if m.Role() == mam.Source {
						fill(m, &b.x, all, func(i int) int64 { return int64(i + 7) })
						fill(m, &b.y, all, func(i int) int64 { return int64(-i) })
					}
					return errors.Join(mam.Distributed(m, "x", &b.x, all), mam.Distributed(m, "y", &b.y, all, mam.Constant))
				}, func(m *mam.Module) error {
					b := of(m)
					return errors.Join(is(m, "x", b.x, func(i int) int64 { return int64(i + 7) }), is(m, "y", b.y, func(i int) int64 { return int64(-i) }))
				})
			})
		}
	}
}

// As many ranks as there are is no change with merge, and with baseline a migration; who
// leaves comes back from its call, and its program ends (defects i, m).
func TestAsManyRanks(t *testing.T) {
	none := func(*mam.Module) error { return nil }
	if n := moved(t, mam.Config{Process: mam.Merge}, []int{3, 3, 3}, none, none); n != 0 {
		t.Errorf("%d have left", n)
	}
	if n := moved(t, mam.Config{Process: mam.Baseline}, []int{2, 2, 2}, none, none); n != 4 {
		t.Errorf("%d have left, want both, twice", n)
	}
	if n := moved(t, mam.Config{Process: mam.Merge, Method: mam.P2P}, []int{4, 2, 3, 1, 2}, none, none); n != 4 {
		t.Errorf("%d have left, want 4", n)
	}
}
