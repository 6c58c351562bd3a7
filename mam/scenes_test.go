// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"gompi/internal/test/scenes"
	"gompi/mam"
	"gompi/mpi"
)

func TestMain(m *testing.M) {
	scenes.Main(m, slices.Concat(programs, spawning, handsDie, []scenes.Scene{outside, strays, endless, deathScene}))
}

func TestScenes(t *testing.T) { scenes.Run(t, slices.Concat(programs, spawning)) }

var programs = []scenes.Scene{
	{Name: "col", Ranks: 3, Run: changes(mam.Config{Method: mam.COL})},
	{Name: "p2p", Ranks: 3, Run: changes(mam.Config{Method: mam.P2P})},
	{Name: "pull", Ranks: 3, Run: changes(mam.Config{Method: mam.Pull})},
	{Name: "pullnow", Ranks: 3, Run: changes(mam.Config{Method: mam.Pull, Strategy: mam.Blocking})},
	{Name: "pullbaseline", Ranks: 2, Run: changes(mam.Config{Method: mam.Pull, Process: mam.Baseline})},
	{Name: "rmalock", Ranks: 3, Run: changes(mam.Config{Method: mam.RMALock})},
	{Name: "rmalockall", Ranks: 3, Run: changes(mam.Config{Method: mam.RMALockall})},
	{Name: "rmabaseline", Ranks: 2, Run: changes(mam.Config{Method: mam.RMALockall, Process: mam.Baseline})},
	{Name: "colnb", Ranks: 3, Run: changes(mam.Config{Method: mam.COL, Strategy: mam.NonBlocking})},
	{Name: "colwd", Ranks: 3, Run: changes(mam.Config{Method: mam.COL, Strategy: mam.WaitDrains})},
	{Name: "p2pnb", Ranks: 3, Run: changes(mam.Config{Method: mam.P2P, Strategy: mam.NonBlocking})},
	{Name: "p2pthread", Ranks: 3, Run: changes(mam.Config{Method: mam.P2P, Strategy: mam.Thread})},
	{Name: "nbbaseline", Ranks: 2, Run: changes(mam.Config{Method: mam.COL, Strategy: mam.NonBlocking, Process: mam.Baseline})},
	{Name: "rmalockthread", Ranks: 3, Run: changes(mam.Config{Method: mam.RMALock, Strategy: mam.Thread})},
	{Name: "rmalockallwd", Ranks: 3, Run: changes(mam.Config{Method: mam.RMALockall, Strategy: mam.WaitDrains})},
	{Name: "wdbaseline", Ranks: 2, Run: changes(mam.Config{Method: mam.RMALock, Strategy: mam.WaitDrains, Process: mam.Baseline})},
	{Name: "inplace", Ranks: 3, Run: changesOf(mam.Config{Method: mam.InPlace}, func() data { return new(arrays) })},
	{Name: "arrays", Ranks: 3, Run: changesOf(mam.Config{Method: mam.P2P, Strategy: mam.Thread}, func() data { return new(arrays) })},
	{Name: "inplacebaseline", Ranks: 2, Run: changesOf(mam.Config{Method: mam.InPlace, Process: mam.Baseline}, func() data { return new(arrays) })},
	{Name: "stale", Ranks: 3, Run: stale},
	{Name: "inplacefrees", Ranks: 2, Run: frees},
	{Name: "killedinplace", Ranks: 3, Run: killedOf(mam.Config{Method: mam.InPlace}, func() data { return new(arrays) }), Dies: 1},
	{Name: "sourceinplace", Ranks: 4, Run: bereaved(mam.Config{Method: mam.InPlace}, 5, 1, coming, 0), Dies: 1},
	{Name: "leaverinplace", Ranks: 4, Run: bereaved(mam.Config{Method: mam.InPlace}, 3, 3, user, 0), Dies: 1},
	{Name: "leavermovinginplace", Ranks: 4, Run: bereaved(mam.Config{Method: mam.InPlace}, 3, 3, moving, anyTime()), Dies: 1},
	{Name: "uncoded", Ranks: 3, Run: notEncoded(mam.Config{Method: mam.COL}), Declines: true},
	{Name: "uncodedpull", Ranks: 3, Run: notEncoded(mam.Config{Method: mam.Pull, Strategy: mam.WaitDrains}), Declines: true},
	{Name: "declined", Ranks: 3, Run: declined(mam.Config{Method: mam.COL}, failing{to: 4, role: mam.Continue}), Declines: true},
	{Name: "declinedlater", Ranks: 3, Run: declined(mam.Config{Method: mam.Pull, Strategy: mam.WaitDrains}, failing{to: 4, role: mam.Continue, calls: 2}), Declines: true},
	{Name: "declinedleaver", Ranks: 3, Run: declined(mam.Config{Method: mam.P2P}, failing{to: 2, role: mam.Leaver}), Declines: true},
	{Name: "declinednewcomer", Ranks: 3, Run: declined(mam.Config{Method: mam.COL}, failing{to: 4, role: mam.NewRank}), Declines: true},
	{Name: "declinedlength", Ranks: 3, Run: declined(mam.Config{Method: mam.COL}, failing{to: 4, length: true}), Declines: true},
	{Name: "declineddies", Ranks: 3, Run: declined(mam.Config{Method: mam.RMALock}, failing{to: 2, role: mam.Continue, dies: true}), Dies: 1},
	{Name: "setters", Ranks: 2, Run: setters},
	{Name: "phases", Ranks: 2, Run: phases(mam.Check)},
	{Name: "wait", Ranks: 2, Run: phases(mam.Wait)},
	{Name: "parted", Ranks: 4, Run: parted, Dies: 1},
	{Name: "lives", Ranks: 3, Run: lives(mam.Config{Method: mam.Pull, Strategy: mam.WaitDrains}, []int{5, 2, 4, 1}, func(*mam.Module) {})},
	{Name: "livescol", Ranks: 2, Run: lives(mam.Config{Method: mam.COL, Strategy: mam.WaitDrains}, []int{4, 1}, func(*mam.Module) {})},
	{Name: "liveson", Ranks: 3, Run: livesOn, Dies: 1},
	{Name: "killed", Ranks: 3, Run: killed(mam.Config{Method: mam.COL}), Dies: 1},
	{Name: "killedpull", Ranks: 3, Run: killed(mam.Config{Method: mam.Pull}), Dies: 1},
	{Name: "killedlock", Ranks: 3, Run: killed(mam.Config{Method: mam.RMALock}), Dies: 1},
	{Name: "bereft", Ranks: 3, Run: bereft(mam.Config{}, 2), Dies: 1},
	{Name: "bereftgrows", Ranks: 3, Run: bereft(mam.Config{Method: mam.COL}, 5), Dies: 1, Declines: true},
	{Name: "bereftgrowswd", Ranks: 3, Run: bereft(mam.Config{Method: mam.P2P, Strategy: mam.WaitDrains}, 5), Dies: 1, Declines: true},
	{Name: "bereftgrowspull", Ranks: 3, Run: bereft(mam.Config{Method: mam.Pull}, 5), Dies: 1, Declines: true},
	{Name: "sourcecoming", Ranks: 4, Run: bereaved(mam.Config{Method: mam.Pull}, 5, 1, coming, 0), Dies: 1},
	{Name: "sourceuser", Ranks: 4, Run: bereaved(mam.Config{Method: mam.Pull}, 5, 1, user, 0), Dies: 1},
	{Name: "sourceuserlock", Ranks: 4, Run: bereaved(mam.Config{Method: mam.RMALock}, 5, 2, user, 0), Dies: 1},
	{Name: "leavercoming", Ranks: 4, Run: bereaved(mam.Config{Method: mam.Pull}, 3, 3, coming, 0), Dies: 1},
	{Name: "leaveruser", Ranks: 4, Run: bereaved(mam.Config{Method: mam.COL}, 3, 3, user, 0), Dies: 1},
	{Name: "leavermoving", Ranks: 4, Run: bereaved(mam.Config{Method: mam.Pull}, 3, 3, moving, anyTime()), Dies: 1},
	{Name: "leavermovinglock", Ranks: 4, Run: bereaved(mam.Config{Method: mam.RMALockall}, 3, 3, moving, anyTime()), Dies: 1},
	{Name: "sourcecomingnb", Ranks: 4, Run: bereaved(mam.Config{Method: mam.P2P, Strategy: mam.NonBlocking}, 5, 1, coming, 0), Dies: 1},
	{Name: "sourcecomingwd", Ranks: 4, Run: bereaved(mam.Config{Method: mam.RMALockall, Strategy: mam.WaitDrains}, 5, 2, coming, 0), Dies: 1},
	{Name: "leavercomingthread", Ranks: 4, Run: bereaved(mam.Config{Method: mam.COL, Strategy: mam.Thread}, 3, 3, coming, 0), Dies: 1},
	{Name: "leavercomingwd", Ranks: 4, Run: bereaved(mam.Config{Method: mam.RMALock, Strategy: mam.WaitDrains}, 3, 3, coming, 0), Dies: 1},
	{Name: "leavermovingnb", Ranks: 4, Run: bereaved(mam.Config{Method: mam.COL, Strategy: mam.NonBlocking}, 3, 3, moving, anyTime()), Dies: 1},
	{Name: "killedwd", Ranks: 3, Run: killed(mam.Config{Method: mam.RMALock, Strategy: mam.WaitDrains}), Dies: 1},
	{Name: "unfinishednb", Ranks: 2, Run: unfinished(mam.Config{Method: mam.P2P, Strategy: mam.NonBlocking}, 5)},
	{Name: "unfinishedthread", Ranks: 2, Run: unfinished(mam.Config{Method: mam.COL, Strategy: mam.Thread}, 7)},
	{Name: "unfinishedwd", Ranks: 2, Run: unfinished(mam.Config{Method: mam.RMALockall, Strategy: mam.WaitDrains}, 9)},
	{Name: "unfinished3", Ranks: 2, Run: unfinished(mam.Config{Method: mam.Pull}, 3)},
	{Name: "unfinished40", Ranks: 2, Run: unfinished(mam.Config{Method: mam.Pull}, 40)},
	{Name: "unfinished400", Ranks: 2, Run: unfinished(mam.Config{Method: mam.Pull}, 400)},
	{Name: "baseline", Ranks: 2, Run: changes(mam.Config{Process: mam.Baseline})},
}

// point is an element of several bytes, as the published copies of what stays with a rank
// go wrong for.
type point struct {
	At   int32
	Half [3]int16
}

// whole is what a rank registers, of all kinds; every element says which one it is.
type whole struct {
	x      []float64 // block
	points []point   // least movement
	deal   []int64   // block-cyclic
	grid   []int32   // 2-D
	vals   []byte    // CSR, by weights of rows
	few    []int16   // fewer than ranks
	none   []uint64  // none at all
	table  []float32 // replicated
	step   int       // replicated, one
	names  words     // encoded
	notes  words     // encoded, of another length in each iteration
}

const (
	elems = 1003
	rows  = 37
)

var weights = func() (w []int) {
	for i := range rows {
		w = append(w, i*7%11)
	}
	return w
}()

var layouts = struct{ x, points, deal, grid, vals, few, none mam.Layout }{
	mam.Block(elems), mam.Block(77).LeastMovement(), mam.BlockCyclic(elems, 7), mam.BlockGrid(31, 23),
	mam.Entries(weights), mam.Block(2), mam.Block(0),
}

// fill makes a rank's part of some data.
func fill[T any](m *mam.Module, x *[]T, l mam.Layout, of func(i int) T) {
	*x = nil
	for at, n := range l.Runs(m.Comm().Size(), m.Comm().Rank()) {
		for i := at; i < at+n; i++ {
			*x = append(*x, of(i))
		}
	}
}

func (d *whole) register(m *mam.Module) error {
	if m.Role() == mam.Source {
		fill(m, &d.x, layouts.x, func(i int) float64 { return float64(i) })
		fill(m, &d.points, layouts.points, func(i int) point { return point{int32(i), [3]int16{int16(i), 1, 2}} })
		fill(m, &d.deal, layouts.deal, func(i int) int64 { return int64(i) << 33 })
		fill(m, &d.grid, layouts.grid, func(i int) int32 { return int32(-i) })
		fill(m, &d.vals, layouts.vals, func(i int) byte { return byte(i * 3) })
		fill(m, &d.few, layouts.few, func(i int) int16 { return int16(i + 1) })
		d.table = []float32{1, 2, 3, 4.5}
		d.names = wordsOf(7)
	}
	return errors.Join(
		mam.Distributed(m, "x", &d.x, layouts.x, mam.Variable),
		mam.Distributed(m, "points", &d.points, layouts.points),
		mam.Distributed(m, "deal", &d.deal, layouts.deal, mam.Constant),
		mam.Distributed(m, "grid", &d.grid, layouts.grid, mam.Constant),
		mam.Distributed(m, "vals", &d.vals, layouts.vals),
		mam.Distributed(m, "few", &d.few, layouts.few, mam.Constant),
		mam.Distributed(m, "none", &d.none, layouts.none),
		mam.Replicated(m, "table", &d.table, mam.Constant),
		mam.ReplicatedOne(m, "step", &d.step),
		mam.Encoded(m, "names", &d.names, mam.Constant),
		mam.Encoded(m, "notes", &d.notes),
	)
}

// is holds data against what it has to be in this iteration.
func is[T comparable](m *mam.Module, name string, x []T, of func(i int) T) error {
	k := 0
	for at, n := range m.Runs(name) {
		for i := at; i < at+n; i++ {
			if k >= len(x) || x[k] != of(i) {
				return fmt.Errorf("iteration %d, rank %d of %d: %q has not element %d as its element %d of %d, but %v", m.Iteration(), m.Comm().Rank(), m.Comm().Size(), name, i, k, len(x), x[min(k, len(x)-1)])
			}
			k++
		}
	}
	if k != len(x) {
		return fmt.Errorf("%q has %d elements on rank %d of %d, its runs have %d", name, len(x), m.Comm().Rank(), m.Comm().Size(), k)
	}
	return nil
}

func (d *whole) check(m *mam.Module, iteration int) error {
	if !slices.Equal(d.table, []float32{1, 2, 3, 4.5}) || d.step != iteration {
		return fmt.Errorf("iteration %d: replicated %v, step %d", iteration, d.table, d.step)
	}
	if !maps.Equal(d.names, wordsOf(7)) || !maps.Equal(d.notes, wordsOf(iteration)) {
		return fmt.Errorf("iteration %d: encoded %v and %v", iteration, d.names, d.notes)
	}
	return errors.Join(
		is(m, "x", d.x, func(i int) float64 { return float64(i + iteration) }),
		is(m, "points", d.points, func(i int) point { return point{int32(i), [3]int16{int16(i), 1, 2}} }),
		is(m, "deal", d.deal, func(i int) int64 { return int64(i) << 33 }),
		is(m, "grid", d.grid, func(i int) int32 { return int32(-i) }),
		is(m, "vals", d.vals, func(i int) byte { return byte(i * 3) }),
		is(m, "few", d.few, func(i int) int16 { return int16(i + 1) }),
		is(m, "none", d.none, func(int) uint64 { return 0 }),
	)
}

// compute is an iteration.
func (d *whole) compute() {
	for i := range d.x {
		d.x[i]++
	}
	d.step++
	d.notes = wordsOf(d.step)
}

// data is what a scene registers.
type data interface {
	register(m *mam.Module) error
	check(m *mam.Module, iteration int) error
	compute()
}

// sizes are what the ranks ask for, one after the other.
var sizes = []int{5, 2, 4, 1, 3}

// changes is a loop with all kinds of data, which changes size by its own wish.
func changes(config mam.Config) func(context.Context, *mpi.Comm) error {
	return changesOf(config, func() data { return new(whole) })
}

func changesOf(config mam.Config, of func() data) func(context.Context, *mpi.Comm) error {
	return func(ctx context.Context, world *mpi.Comm) error {
		d := of()
		at, last := 0, -1
		return mam.Loop(ctx, world, config, d.register, func(m *mam.Module, iteration int) (bool, error) {
			if m.Role() == mam.Target && last < 0 { // it goes on where the others are
				at = slices.Index(sizes, m.Comm().Size())
				last = iteration - 1
				at++
			} else if at < len(sizes) && m.Comm().Size() == sizes[at] {
				at++
			}
			if iteration != last+1 {
				return false, fmt.Errorf("iteration %d behind %d", iteration, last)
			}
			last = iteration
			if n, err := mpi.AllreduceOne(m.Comm(), iteration, mpi.Max); err != nil || n != iteration {
				return false, fmt.Errorf("iteration %d beside %d: %w", iteration, n, err)
			}
			if err := d.check(m, iteration); err != nil {
				return false, err
			}
			if at == len(sizes) {
				return true, nil
			}
			d.compute()
			return false, m.SetTarget(sizes[at])
		})
	}
}
