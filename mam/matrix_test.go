// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/test/testlab"
	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

// owners is who of some ranks has each element.
func owners(l mam.Layout, ranks int) (list []int) {
	list = make([]int, l.Elems())
	for r := range ranks {
		for at, n := range l.Runs(ranks, r) {
			for i := at; i < at+n; i++ {
				list[i] = r
			}
		}
	}
	return list
}

// minimum is how many elements have another rank of nd than of ns.
func minimum(l mam.Layout, ns, nd int) (n int) {
	before, after := owners(l, ns), owners(l, nd)
	for i := range before {
		if before[i] != after[i] {
			n++
		}
	}
	return n
}

// variants are all methods with all strategies that are theirs, and the repaired ones.
var variants = func() (list []mam.Config) {
	for _, method := range []mam.Method{mam.COL, mam.P2P, mam.RMALock, mam.RMALockall, mam.Pull} {
		for _, strategy := range []mam.Strategy{mam.Blocking, mam.NonBlocking, mam.Thread, mam.WaitDrains} {
			list = append(list, mam.Config{Method: method, Strategy: strategy})
		}
	}
	return append(list, mam.Config{}, mam.Config{Method: mam.Pull}, mam.Config{Strategy: mam.WaitDrains})
}()

// Every method moves each kind of data between any numbers of ranks, with every strategy,
// and as many bytes as it has to: those that have another process afterwards. The short
// form does a twentieth of it.
func TestMatrix(t *testing.T) {
	k, seed := 0, testlab.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, config := range variants {
		for _, transport := range []string{"inproc", "shm", "tcp"} {
			t.Run(fmt.Sprint(config.Method, "/", config.Strategy, "/", transport), func(t *testing.T) {
				for ns := 1; ns <= 5; ns++ {
					for nd := 1; nd <= 5; nd++ {
						if ns != nd && (testlab.Long() || rng.IntN(20) == 0) {
							once(t, config, ns, nd, transport)
							k++
						}
					}
				}
			})
		}
	}
	t.Logf("%d changes", k)
}

func once(t *testing.T, config mam.Config, ns, nd int, transport string) {
	replicated := 4*4 + 8 + wordsOf(7).bytes() // that each newcomer gets
	want := int64(minimum(layouts.x, ns, nd)*8 + minimum(layouts.deal, ns, nd)*8 + minimum(layouts.grid, ns, nd)*4 +
		minimum(layouts.vals, ns, nd) + minimum(layouts.few, ns, nd)*2 + max(0, nd-ns)*replicated)
	// Least movement moves what newcomers have, or leavers had, for these counts.
	fair := func(k int) (n int) {
		for r := range min(ns, nd) {
			n += layouts.points.Count(k, r)
		}
		return n
	}
	want += int64(12 * (layouts.points.Elems() - fair(max(ns, nd))))
	var moved, notes atomic.Int64
	mpitest.Run(t, ns, func(t *mpitest.T, world *mpi.Comm) {
		var d whole
		err := mam.Loop(t.Context(), world, config, d.register, func(m *mam.Module, i int) (bool, error) {
			if err := d.check(m, i); err != nil {
				return false, err
			}
			if m.Comm().Size() == nd {
				if got := m.Times(); got.NS != ns || got.ND != nd || got.Total <= 0 {
					return false, fmt.Errorf("times of another change: %+v", got)
				}
				if err := inOrder(m.Times(), config); err != nil {
					return false, err
				}
				moved.Add(m.Times().Bytes)
				notes.Store(int64(d.notes.bytes()))
				return true, nil
			}
			d.compute()
			if err := m.Comm().Barrier(); err != nil {
				return false, err
			}
			return false, m.SetTarget(nd)
		})
		if err != nil && !errors.Is(err, mpi.ErrLeaving) {
			t.Fatal(err)
		}
	}, mpitest.Transport(transport))
	if want += int64(max(0, nd-ns)) * notes.Load(); moved.Load() != want {
		t.Errorf("from %d to %d ranks: %d bytes have moved, %d had to", ns, nd, moved.Load(), want)
	}
}

// inOrder says what is wrong with the spans of a change, and with what it was done by.
func inOrder(t mam.Times, config mam.Config) error {
	method, strategy := config.Method, config.Strategy
	if method == mam.Auto {
		method = t.Method
	}
	switch {
	case strategy == mam.Auto:
		strategy = t.Strategy
	case strategy == mam.NonBlocking && t.Method >= mam.RMALock: // repaired
		strategy = mam.WaitDrains
	}
	if t.Method != method || t.Strategy != strategy || method == mam.Auto || strategy == mam.Auto {
		return fmt.Errorf("%v was asked for, %v and %v were used", config, t.Method, t.Strategy)
	}
	var sum [3]time.Duration
	for i, s := range t.Spans {
		sum[s.Phase] += s.End.Sub(s.Start)
		if s.End.Before(s.Start) || i > 0 && s.End.Before(t.Spans[i-1].End) {
			return fmt.Errorf("span %d is %+v, in %+v", i, s, t.Spans)
		}
	}
	if sum[mam.Touching] != t.Touch || sum[mam.Background] != t.Async || sum[mam.AtCommit] < t.Sync {
		return fmt.Errorf("the spans are %v, the times %+v", sum, t)
	}
	return nil
}
