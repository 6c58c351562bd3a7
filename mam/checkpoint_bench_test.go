// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"fmt"
	"testing"

	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

// A Checkpoint without a change, and while constant data is on its way.
func BenchmarkCheckpoint(b *testing.B) {
	configs := []mam.Config{{}}
	for _, c := range variants {
		if c.Strategy > mam.Blocking && c.Method != mam.Auto {
			configs = append(configs, c)
		}
	}
	for _, config := range configs {
		name := "quiet"
		if config != (mam.Config{}) {
			name = fmt.Sprint(config.Method, "-", config.Strategy)
		}
		b.Run(name, func(b *testing.B) {
			d := newDam(config)
			b.Cleanup(d.open)
			mpitest.Run(b, 1, func(t *mpitest.T, world *mpi.Comm) {
				var h heavy
				m, role, err := mam.Init(t.Context(), world, config, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer m.Finalize()
				if err := h.register(m); err != nil {
					t.Fatal(err)
				}
				if role == mam.Target {
					return
				}
				check := func() mam.State {
					state, err := m.Checkpoint(mam.Check)
					if err != nil {
						t.Fatal(err)
					}
					return state
				}
				if config != (mam.Config{}) {
					if err := m.SetTarget(2); err != nil {
						t.Fatal(err)
					}
					for d.held.Load() == 0 {
						check()
					}
				}
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					check()
				}
				b.StopTimer()
				if config == (mam.Config{}) {
					return
				}
				for d.open(); check() != mam.Completed; {
				}
			}, mpitest.Transport("shm"), d.option())
		})
	}
}
