// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

// BenchmarkVariable: 256 MiB of variable data on two ranks that become four, of which one per
// cent of the pages is written in the last iteration before the commit: how long the longest
// rank takes to move data at the commit. docs/results/resize.md.
func BenchmarkVariable(b *testing.B) {
	const bytes = 256 << 20
	for _, c := range []struct {
		name   string
		config mam.Config
		mode   mam.Mode
	}{
		{"at-commit", mam.Config{Method: mam.Pull, Strategy: mam.Blocking}, mam.Variable},
		{"watched", mam.Config{Method: mam.Pull, Strategy: mam.WaitDrains}, mam.Variable},
		{"marked", mam.Config{Method: mam.Pull, Strategy: mam.WaitDrains}, mam.Marked},
	} {
		b.Run(c.name, func(b *testing.B) {
			var syncs, totals []float64
			var again int64
			for b.Loop() {
				var mu sync.Mutex
				var longest, total time.Duration
				again = 0
				mpitest.Run(b, 2, func(t *mpitest.T, world *mpi.Comm) {
					x, err := benchVariable(t, world, c.config, c.mode, bytes/8)
					if err != nil {
						t.Fatal(err)
					}
					mu.Lock()
					defer mu.Unlock()
					longest, total, again = max(longest, x.Sync), max(total, x.Total), again+x.Again
				}, mpitest.Transport("shm"))
				syncs, totals = append(syncs, float64(longest.Microseconds())/1000), append(totals, float64(total.Microseconds())/1000)
			}
			slices.Sort(syncs)
			slices.Sort(totals)
			b.ReportMetric(syncs[len(syncs)/2], "commit-ms")
			b.ReportMetric(totals[len(totals)/2], "total-ms")
			b.ReportMetric(float64(again)/(1<<20), "again-MiB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func benchVariable(t *mpitest.T, world *mpi.Comm, config mam.Config, mode mam.Mode, n int) (mam.Times, error) {
	const page = 4096 / 8
	var x []int64
	var m *mam.Module
	l := mam.Block(n)
	m, role, err := mam.Init(t.Context(), world, config, func(u *mam.User) error {
		u.Resume()
		if u.Role == mam.NewRank {
			return nil
		}
		r := rand.New(rand.NewPCG(1, uint64(u.Comm.Rank())))
		for range len(x) / page / 100 {
			k := r.IntN(len(x))
			x[k]++
			if mode == mam.Marked {
				if err := m.Written("x", k, k+1); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return mam.Times{}, err
	}
	defer m.Finalize()
	if role == mam.Source {
		x = make([]int64, l.Count(world.Size(), world.Rank()))
		for k := range x {
			x[k] = int64(k)
		}
	}
	if err := mam.Distributed(m, "x", &x, l, mode); err != nil {
		return mam.Times{}, err
	}
	for m.Comm().Size() != 4 {
		time.Sleep(iterationTime) //archtest:sleep an iteration of the program
		if err := m.SetTarget(4); err != nil {
			return mam.Times{}, err
		}
		if _, err := m.Checkpoint(mam.Check); err != nil {
			return mam.Times{}, err
		}
	}
	return m.Times(), m.Finalize()
}
