// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"gompi/internal/test/testlab"
	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

const dam = "testdata/bcsstk16.mtx.gz"

// histories are the residuals of the real system by each number of ranks that stays.
func histories(t *testing.T, most int) (list [][]float64) {
	for ranks := 1; ranks <= most; ranks++ {
		mpitest.Run(t, ranks, func(t *mpitest.T, world *mpi.Comm) {
			if s := solveFile(t, world, dam, "", 1000); world.Rank() == root {
				list = append(list, s.history())
			}
		})
	}
	return list
}

// spread is by how much residuals in an iteration differ for the order of summation
// alone: the largest relative difference between any two numbers of ranks, in that
// iteration or before, since what rounding has moved stays moved.
func spread(all [][]float64) (list []float64) {
	worst := 0.0
	for k := range all[0] {
		for _, h := range all {
			for _, g := range all {
				if k < len(h) && k < len(g) {
					worst = max(worst, math.Abs(h[k]/g[k]-1))
				}
			}
		}
		list = append(list, worst)
	}
	return list
}

// From every number of ranks to every other the history is, up to the change, that of the
// ranks of before, to the bit. Behind it the sums are made in another order, as by any
// number of ranks that stays: so the history differs from theirs by what they differ by
// from each other, times a factor since these are five samples only. Of this system that
// grows from 1e-14 soon after the change to some ten per cent in the end (its condition
// is 5e9), so the change comes early. An element that is lost in it is far out of that,
// as the last case shows. The short form has half of the cases.
func TestResize(t *testing.T) {
	const most, factor, at = 5, 10, 12
	static := histories(t, most)
	band := spread(static)
	if tight := band[4*at]; tight == 0 || tight > 1e-3 || band[2*at] > 1e-10 {
		t.Fatalf("histories of numbers of ranks that stay differ by %g, and by %g later", band[2*at], tight)
	}
	shortest, longest := len(static[0]), len(static[0])
	for _, h := range static {
		shortest, longest = min(shortest, len(h)), max(longest, len(h))
	}
	beyond := func(h []float64) float64 { // how often as much
		worst := 0.0
		for k := range min(len(h), len(band)) {
			worst = max(worst, math.Abs(h[k]/static[0][k]-1)/(band[k]+1e-15))
		}
		return worst
	}
	resize := func(ns, nd int, config mam.Config, spoil bool) (history []float64) {
		mpitest.Run(t, ns, func(t *mpitest.T, world *mpi.Comm) {
			s := &solver{matrix: dam, tol: 1e-10, most: 1000}
			resized := 0
			s.resized = func(m *mam.Module) error {
				resized++
				if spoil && m.Comm().Rank() == nd-1 {
					s.r[len(s.r)/2] = 0
				}
				if n, now := m.Times(), m.Comm().Size(); n.NS != ns || n.ND != nd || now != nd {
					return fmt.Errorf("from %d to %d ranks, and there are %d; %d and %d are wanted", n.NS, n.ND, now, ns, nd)
				}
				return nil
			}
			s.over = func(m *mam.Module) error {
				if resized != 1 {
					return fmt.Errorf("resized %d times", resized)
				}
				if m.Comm().Rank() == root {
					history = s.history()
				}
				residual, offOne, err := s.check(s.x)
				if last := s.residuals[s.Done]; !spoil && (math.Abs(residual-last) > 1e-12 || offOne > 1e-8) {
					return fmt.Errorf("residual %g, the recurrence has %g, error %g, %v", residual, last, offOne, err)
				}
				return err
			}
			err := mam.Loop(t.Context(), world, config, s.register, func(m *mam.Module, i int) (bool, error) {
				if s.Done == at && m.Comm().Size() == ns {
					if err := m.SetTarget(nd); err != nil {
						return false, err
					}
					if _, err := m.Checkpoint(mam.Wait); err != nil {
						return false, err
					}
				}
				return s.iterate(m, i)
			})
			if err != nil && !errors.Is(err, mpi.ErrLeaving) {
				t.Fatal(err)
			}
		})
		return history
	}
	check := func(ns, nd int, config mam.Config) {
		h := resize(ns, nd, config, false)
		if len(h) <= at || !slices.Equal(h[:at+1], static[ns-1][:at+1]) {
			t.Errorf("%+v: from %d to %d ranks: before the change the history is not that of %d ranks", config, ns, nd, ns)
		}
		if x := beyond(h); x > factor || len(h) < shortest-1 || len(h) > longest+1 {
			t.Errorf("%+v: from %d to %d ranks: %d iterations, without a change %d to %d; residuals differ %.1f times as much as by the order of summation", config, ns, nd, len(h)-1, shortest-1, longest-1, x)
		}
	}
	for ns := 1; ns <= most; ns++ {
		for nd := 1; nd <= most; nd++ {
			if ns != nd && testlab.Takes(ns+nd/2, 2) {
				check(ns, nd, mam.Config{})
			}
		}
	}
	for i, config := range []mam.Config{
		{Process: mam.Baseline}, {Method: mam.P2P}, {Method: mam.RMALock}, {Method: mam.RMALockall}, {Method: mam.Pull},
		{Method: mam.Pull, Strategy: mam.Blocking}, {Method: mam.COL, Strategy: mam.NonBlocking}, {Method: mam.RMALockall, Strategy: mam.WaitDrains},
	} {
		if testlab.Takes(i, 2) {
			check(2, 5, config)
		}
		if testlab.Takes(i+1, 2) {
			check(4, 3, config)
		}
	}
	if x := beyond(resize(2, 3, mam.Config{}, true)); x < 1000*factor {
		t.Errorf("with an element that is lost residuals differ only %.1f times as much", x)
	}
}
