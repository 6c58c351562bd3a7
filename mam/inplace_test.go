// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"gompi/internal/test/testjob"
	"gompi/internal/test/testlab"
	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

// arrays are data that lies in memory of the hosts, beside some that does not.
type arrays struct {
	x     []float64 // block
	heavy []int16   // weighted
	odd   []point   // irregular, 12 bytes each
	rows  []int32   // constant
	vals  []byte    // constant
	few   []int64   // fewer than ranks
	none  []int64
	deal  []int32 // not in order: not in place
	other []int64 // no array
	step  int
}

var inPlace = struct{ x, heavy, odd, rows, vals, few, none, deal, other mam.Layout }{
	mam.Block(20_011), mam.Weighted(9_001, 1, 3, 2), mam.Irregular(777, []int{777}, []int{7, 770}, []int{0, 700, 77}, []int{1, 2, 3, 771}),
	mam.Rows(weights), mam.Entries(weights), mam.Block(2), mam.Block(0), mam.BlockCyclic(999, 10), mam.Block(505),
}

// ofPoint is element i of odd.
func ofPoint(i int) point { return point{int32(i), [3]int16{3, int16(i), 1}} }

func (d *arrays) register(m *mam.Module) error {
	err := errors.Join(
		mam.Array(m, "x", &d.x, inPlace.x),
		mam.Array(m, "heavy", &d.heavy, inPlace.heavy, mam.Variable),
		mam.Array(m, "odd", &d.odd, inPlace.odd),
		mam.Array(m, "rows", &d.rows, inPlace.rows, mam.Constant),
		mam.Array(m, "vals", &d.vals, inPlace.vals, mam.Constant),
		mam.Array(m, "few", &d.few, inPlace.few),
		mam.Array(m, "none", &d.none, inPlace.none),
		mam.Array(m, "deal", &d.deal, inPlace.deal))
	if m.Role() == mam.Source {
		put(m, d.x, "x", func(i int) float64 { return float64(i) })
		put(m, d.heavy, "heavy", func(i int) int16 { return int16(i) })
		put(m, d.odd, "odd", ofPoint)
		put(m, d.rows, "rows", func(i int) int32 { return int32(-i) })
		put(m, d.vals, "vals", func(i int) byte { return byte(5 * i) })
		put(m, d.few, "few", func(i int) int64 { return int64(i + 1) })
		put(m, d.deal, "deal", func(i int) int32 { return int32(i * i) })
		fill(m, &d.other, inPlace.other, func(i int) int64 { return int64(i) << 40 })
	}
	return errors.Join(err, mam.Distributed(m, "other", &d.other, inPlace.other), mam.ReplicatedOne(m, "step", &d.step))
}

// put writes a rank's part of some data.
func put[T any](m *mam.Module, x []T, name string, of func(i int) T) {
	k := 0
	for at, n := range m.Runs(name) {
		for i := at; i < at+n; i++ {
			x[k] = of(i)
			k++
		}
	}
}

func (d *arrays) check(m *mam.Module, iteration int) error {
	if d.step != iteration {
		return fmt.Errorf("step %d in iteration %d", d.step, iteration)
	}
	return errors.Join(
		is(m, "x", d.x, func(i int) float64 { return float64(i + iteration) }),
		is(m, "heavy", d.heavy, func(i int) int16 { return int16(i - iteration) }),
		is(m, "odd", d.odd, ofPoint),
		is(m, "rows", d.rows, func(i int) int32 { return int32(-i) }),
		is(m, "vals", d.vals, func(i int) byte { return byte(5 * i) }),
		is(m, "few", d.few, func(i int) int64 { return int64(i + 1 + iteration) }),
		is(m, "none", d.none, func(i int) int64 { return 0 }),
		is(m, "deal", d.deal, func(i int) int32 { return int32(i * i) }),
		is(m, "other", d.other, func(i int) int64 { return int64(i) << 40 }))
}

// compute is an iteration.
func (d *arrays) compute() {
	for i := range d.x {
		d.x[i]++
	}
	for i := range d.heavy {
		d.heavy[i]--
	}
	for i := range d.few {
		d.few[i]++
	}
	d.step++
}

// Arrays have their contents at any change between any numbers of ranks, on one host
// without a byte moving, and between hosts. The short form has half of the pairs of numbers.
func TestArrays(t *testing.T) {
	configs := []mam.Config{{Method: mam.InPlace}, {Method: mam.COL, Strategy: mam.NonBlocking}}
	if os.Getenv("GOMPI_TEST") == "long" {
		configs = append(configs, mam.Config{}, mam.Config{Method: mam.P2P, Strategy: mam.WaitDrains}, mam.Config{Method: mam.RMALockall}, mam.Config{Method: mam.InPlace, Strategy: mam.Blocking}, mam.Config{Method: mam.InPlace, Process: mam.Baseline})
	}
	for _, config := range configs {
		for name, opts := range map[string][]mpitest.Option{
			"inproc": {mpitest.Transport("inproc")},
			"shm":    {mpitest.Transport("shm")},
			"hosts":  {testjob.Hosts(3, 3), mpitest.Transport("shm,tcp")},
		} {
			t.Run(fmt.Sprintf("%v/%v/%v/%s", config.Method, config.Strategy, config.Process, name), func(t *testing.T) {
				for ns := 1; ns <= 5; ns++ {
					for nd := 1; nd <= 5; nd++ {
						if ns != nd && testlab.Takes(ns+nd/2, 2) {
							back(t, config, ns, nd, name != "hosts" && config.Process != mam.Baseline, opts)
						}
					}
				}
			})
		}
	}
}

// back goes from ns ranks to nd, and back.
func back(t *testing.T, config mam.Config, ns, nd int, oneHost bool, opts []mpitest.Option) {
	const newcomer = 8 // bytes that each gets of replicated data
	moves := func(ns, nd int) int64 {
		return int64(minimum(inPlace.deal, ns, nd)*4 + minimum(inPlace.other, ns, nd)*8 + max(0, nd-ns)*newcomer)
	}
	var moved atomic.Int64
	mpitest.Run(t, ns, func(t *mpitest.T, world *mpi.Comm) {
		var d arrays
		counted := 0
		err := mam.Loop(t.Context(), world, config, d.register, func(m *mam.Module, i int) (bool, error) {
			if err := d.check(m, i); err != nil {
				return false, err
			}
			d.compute()
			to, got := nd, m.Times()
			if size := m.Comm().Size(); got.ND == size && size != counted { // the first iteration with the result
				moved.Add(got.Bytes)
				counted = size
			}
			if got.ND == nd {
				to = ns
			} else if got.ND == ns {
				return true, nil
			}
			if err := m.Comm().Barrier(); err != nil {
				return false, err
			}
			return false, m.SetTarget(to)
		})
		if err != nil && !errors.Is(err, mpi.ErrLeaving) {
			t.Fatal(err)
		}
	}, opts...)
	if want := moves(ns, nd) + moves(nd, ns); oneHost && moved.Load() != want {
		t.Errorf("from %d to %d ranks and back: %d bytes have moved, %d had to", ns, nd, moved.Load(), want)
	}
}
