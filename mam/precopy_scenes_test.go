// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/host/dirty"
	"gompi/internal/test/scenes"
	"gompi/internal/test/testlab"
	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

// written is the oracle of data that is written while it moves: in iteration t each rank
// writes those of its elements whose block of so many is that of the iteration, modulo
// period. An element says which one it is and when it was written last.
const (
	writtenBlock  = 600
	writtenPeriod = 53 // a prime
	writtenStep   = 7
)

// writtenIn reports whether element i is written in iteration t.
func writtenIn(i, t int) bool {
	return (i/writtenBlock-t*writtenStep)%writtenPeriod == 0
}

// lastWritten is the last iteration up to t in which element i was; -1: in none.
func lastWritten(i, t int) int {
	for k := 0; k < writtenPeriod && k <= t; k++ {
		if writtenIn(i, t-k) {
			return t - k
		}
	}
	return -1
}

func valueOf(i, written int) int64 { return int64(i)<<24 | int64(written+1) }

// number is what elements are.
type number interface {
	~float64 | ~int64 | ~int32 | ~uint32
}

// datum is one of the data.
type datum[T number] struct {
	name   string
	x      []T
	l      mam.Layout
	mode   mam.Mode
	copies bool // all ranks have it
	swaps  bool // it is in another memory every few iterations
}

func (d *datum[T]) runs(m *mam.Module) func(func(int, int) bool) {
	if d.copies {
		return func(yield func(int, int) bool) { yield(0, d.l.Elems()) }
	}
	return m.Runs(d.name)
}

func (d *datum[T]) register(m *mam.Module) error {
	if m.Role() == mam.Source {
		d.x = nil
		each := d.l.Runs(m.Comm().Size(), m.Comm().Rank())
		if d.copies {
			each = d.runs(m)
		}
		for at, n := range each {
			for i := at; i < at+n; i++ {
				d.x = append(d.x, T(valueOf(i, -1)))
			}
		}
		d.x = slices.Clip(d.x)
	}
	if d.copies {
		return mam.Replicated(m, d.name, &d.x, d.mode)
	}
	return mam.Distributed(m, d.name, &d.x, d.l, d.mode)
}

// write writes what iteration t writes.
func (d *datum[T]) write(m *mam.Module, t int) error {
	if d.swaps && t%16 == 0 {
		d.x = slices.Clone(d.x)
	}
	k := 0
	for at, n := range d.runs(m) {
		for i := at; i < at+n; {
			end := min(i-i%writtenBlock+writtenBlock, at+n)
			if writtenIn(i, t) {
				from := k + i - at
				for j := i; j < end; j++ {
					d.x[from+j-i] = T(valueOf(j, t))
				}
				if d.mode == mam.Marked {
					if err := m.Written(d.name, from, from+end-i); err != nil {
						return err
					}
				}
			}
			i = end
		}
		k += n
	}
	return nil
}

// check holds data against what it is in the beginning of an iteration.
func (d *datum[T]) check(m *mam.Module, t int) error {
	k := 0
	for at, n := range d.runs(m) {
		for i := at; i < at+n; i++ {
			if want := T(valueOf(i, lastWritten(i, t-1))); k >= len(d.x) || d.x[k] != want {
				return fmt.Errorf("iteration %d, rank %d of %d: element %d of %q, the %dth of %d, is %#x, want %#x",
					t, m.Comm().Rank(), m.Comm().Size(), i, d.name, k, len(d.x), int64(d.x[min(k, len(d.x)-1)]), int64(want))
			}
			k++
		}
	}
	if k != len(d.x) {
		return fmt.Errorf("%q has %d elements on rank %d, its runs have %d", d.name, len(d.x), m.Comm().Rank(), k)
	}
	return nil
}

// kept is any of the data.
type kept interface {
	register(*mam.Module) error
	write(*mam.Module, int) error
	check(*mam.Module, int) error
}

// living is data of all kinds that is worth lending.
type living struct {
	block   datum[float64]
	deal    datum[int64]
	grid    datum[uint32]
	least   datum[int64]
	marked  datum[int64]
	swapped datum[float64]
	copied  datum[int32]
	still   datum[int64] // constant
}

func newLiving() *living {
	return &living{
		block:   datum[float64]{name: "block", l: mam.Block(40_000)},
		deal:    datum[int64]{name: "deal", l: mam.BlockCyclic(30_000, 1_700)},
		grid:    datum[uint32]{name: "grid", l: mam.BlockGrid(250, 150)},
		least:   datum[int64]{name: "least", l: mam.Block(30_001).LeastMovement()},
		marked:  datum[int64]{name: "marked", l: mam.Block(30_000), mode: mam.Marked},
		swapped: datum[float64]{name: "swapped", l: mam.Block(9_000), swaps: true},
		copied:  datum[int32]{name: "copied", l: mam.Block(20_000), copies: true},
		still:   datum[int64]{name: "still", l: mam.Block(5_000), mode: mam.Constant},
	}
}

// all calls f of each of the data.
func (d *living) all(f func(x kept) error) error {
	return errors.Join(f(&d.block), f(&d.deal), f(&d.grid), f(&d.least), f(&d.marked), f(&d.swapped), f(&d.copied))
}

// lives is a program whose ranks write some elements in each iteration, also while data
// moves and between its reading in the background and the commit, where the user phase
// holds the change for a few iterations; it changes to each of the sizes.
func lives(config mam.Config, sizes []int, committed func(m *mam.Module)) func(context.Context, *mpi.Comm) error {
	return func(ctx context.Context, world *mpi.Comm) error {
		calls := 0
		m, role, err := mam.Init(ctx, world, config, func(u *mam.User) error {
			if calls++; calls%3 == 0 {
				u.Resume()
			}
			return nil
		})
		if err != nil {
			return err
		}
		defer m.Finalize()
		d := newLiving()
		err = errors.Join(d.still.register(m), d.all(func(x kept) error {
			return x.register(m)
		}))
		if err != nil {
			return err
		}
		check := func(t int) error {
			return d.all(func(x kept) error {
				return x.check(m, t)
			})
		}
		at := 0
		if role == mam.Target {
			at = slices.Index(sizes, m.Comm().Size()) + 1
			if err := check(m.Iteration()); err != nil {
				return err
			}
			committed(m)
		}
		for at < len(sizes) {
			time.Sleep(iterationTime) //archtest:sleep an iteration of the program
			if err := m.SetTarget(sizes[at]); err != nil {
				return err
			}
			t := m.Iteration()
			err := d.all(func(x kept) error {
				return x.write(m, t)
			})
			if err != nil {
				return err
			}
			state, err := m.Checkpoint(mam.Check)
			if err != nil {
				return err
			}
			if state == mam.Completed {
				if err := check(m.Iteration()); err != nil {
					return err
				}
				committed(m)
				at++
			}
		}
		return m.Finalize()
	}
}

// What is written while data moves in the background is there after the commit, whatever
// the layout, the transport and the numbers of ranks; what has to move twice is what was
// written; and without a kernel that tells, all but what is marked moves at the commit. In
// the short form each variant goes through every other row of numbers of ranks.
func TestWrittenWhileItMoves(t *testing.T) {
	k, untracked := dirty.Open()
	if untracked == nil {
		k.Close()
	}
	type variant struct {
		config           mam.Config
		transport, track string
	}
	var list []variant
	for _, transport := range []string{"inproc", "shm", "tcp"} {
		for _, c := range []mam.Config{
			{Method: mam.Pull, Strategy: mam.WaitDrains}, {Method: mam.COL, Strategy: mam.NonBlocking}, {Method: mam.COL, Strategy: mam.WaitDrains}, {Method: mam.P2P, Strategy: mam.Thread},
			{Method: mam.P2P, Strategy: mam.WaitDrains}, {Method: mam.RMALock, Strategy: mam.WaitDrains}, {Method: mam.RMALockall, Strategy: mam.Thread},
		} {
			list = append(list, variant{c, transport, "auto"})
		}
		list = append(list, variant{mam.Config{Method: mam.Pull, Strategy: mam.WaitDrains}, transport, "off"}, variant{mam.Config{Method: mam.COL, Strategy: mam.Thread}, transport, "off"})
	}
	for i, v := range list {
		transport, track := v.transport, v.track
		t.Run(fmt.Sprint(v.config.Method, "/", v.config.Strategy, "/", transport, "/", track), func(t *testing.T) {
			chains := [][]int{{1, 3, 2}, {4, 1, 2}}
			if track == "auto" && v.config.Method == mam.Pull { // all pairs of up to five
				chains = nil
				for i := range 5 {
					a, b, c := i+1, (i+1)%5+1, (i+4)%5+1
					chains = append(chains, []int{a, b, c}, []int{c, b, a})
				}
			}
			for c, sizes := range chains {
				if !testlab.Takes(i+c, 2) {
					continue
				}
				var early, again, moved atomic.Int64
				program := lives(v.config, sizes[1:], func(m *mam.Module) {
					x := m.Times()
					early.Add(x.Early)
					again.Add(x.Again)
					moved.Add(x.Bytes)
				})
				mpitest.Run(t, sizes[0], func(t *mpitest.T, world *mpi.Comm) {
					if err := program(t.Context(), world); err != nil && !errors.Is(err, mpi.ErrLeaving) {
						t.Fatal(err)
					}
				}, mpitest.Transport(transport), mpitest.Setting("GOMPI_MAM_TRACK", track))
				var want, marked int64
				for i, ns := range sizes[:2] {
					nd := sizes[i+1]
					d := newLiving()
					marked += int64(8 * minimum(d.marked.l, ns, nd))
					want += int64(8 * (minimum(d.block.l, ns, nd) + minimum(d.deal.l, ns, nd) + minimum(d.swapped.l, ns, nd) + minimum(d.still.l, ns, nd)))
					want += int64(4*minimum(d.grid.l, ns, nd) + 4*d.copied.l.Elems()*max(0, nd-ns))
					want += 8 * int64(d.least.l.Elems()-leastKept(d.least.l, ns, nd))
				}
				want += marked
				if moved.Load()-again.Load() != want {
					t.Errorf("%v: %d bytes have moved, and %d of them again; %d had to", sizes, moved.Load(), again.Load(), want)
				}
				switch {
				case again.Load() == 0 || again.Load() > early.Load():
					t.Errorf("%v: %d bytes again of %d", sizes, again.Load(), early.Load())
				case track == "off" && early.Load() != marked:
					t.Errorf("%v: %d bytes in the background, of %d that are marked", sizes, early.Load(), marked)
				case track == "auto" && untracked == nil && early.Load() < want*2/3:
					t.Errorf("%v: only %d bytes of %d in the background", sizes, early.Load(), want)
				}
			}
		})
	}
	if untracked != nil {
		t.Logf("this kernel does not tell what was written: %v", untracked)
	}
}

// livesOn is a program of three ranks whose newcomer dies behind the reading in the background
// of the first change, which is rolled back, and for which the next one reads anew.
func livesOn(ctx context.Context, world *mpi.Comm) error {
	var m *mam.Module
	rolled := false
	m, role, err := mam.Init(ctx, world, mam.Config{Method: mam.Pull, Strategy: mam.WaitDrains}, func(u *mam.User) error {
		if u.ND == 4 && u.Role == mam.NewRank {
			scenes.Die(ctx)
		}
		u.Resume()
		return u.Comm.Barrier()
	})
	if err != nil {
		return err
	}
	defer m.Finalize()
	d := newLiving()
	err = errors.Join(d.still.register(m), d.all(func(x kept) error { return x.register(m) }))
	if err != nil {
		return err
	}
	for m.Comm().Size() != 2 {
		time.Sleep(iterationTime) //archtest:sleep an iteration of the program
		target := 4
		if rolled {
			target = 2
		}
		t := m.Iteration()
		if err := errors.Join(m.SetTarget(target), d.all(func(x kept) error { return x.write(m, t) })); err != nil {
			return err
		}
		was := m.State()
		state, err := m.Checkpoint(mam.Check)
		if err == nil {
			err = d.all(func(x kept) error { return x.check(m, m.Iteration()) })
		}
		if err != nil {
			return err
		}
		rolled = rolled || was != mam.NotStarted && state == mam.NotStarted
	}
	err = d.all(func(x kept) error { return x.check(m, m.Iteration()) })
	if role != mam.Source || !rolled {
		err = errors.New("nothing was rolled back")
	}
	if k, untracked := dirty.Open(); untracked == nil {
		if got := m.Times(); got.Early < (got.Bytes-got.Again)/2 {
			err = errors.Join(err, fmt.Errorf("of what was watched once little was lent: %+v", got))
		}
		k.Close()
	}
	return errors.Join(err, m.Finalize())
}

// leastKept is how many elements stay, of a layout of least movement by Block's counts.
func leastKept(l mam.Layout, ns, nd int) (n int) {
	for r := range min(ns, nd) {
		n += l.Count(max(ns, nd), r)
	}
	return n
}
