// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
	"time"

	"gompi/mam"
	"gompi/mpi"
)

// job is a rank's part of the computation, on as many ranks as there are just then.
type job struct {
	settings
	water
	state
	done []phase // as many as there are to be

	coming *coming // what the user function has brought, until the change is committed

	plan []int            // ranks of the phases; nil: as grow says
	out  io.Writer        // of rank 0
	over func(all []cell) // is called with the end, by rank 0; may be nil

	began time.Time     // of the phase, as far as this process was there
	lost  time.Duration // in changes since then
}

// state is the same on all ranks.
type state struct {
	Step  int
	Time  float64
	Start int     // how many ranks there were in the beginning
	Mass  float64 // of the water then
}

// phase is what a part of the run took: the same on all ranks, as rank 0 has measured it.
type phase struct {
	Ranks, Cells int // at its end
	Seconds      float64
	Change       float64 // seconds that changes of size took before it, or in its midst
}

// coming is what a rank is to have after a change, of an adaptive grid.
type coming struct {
	levels []uint8
	cells  []cell
}

// run computes until all steps are done. Collective over the ranks of the beginning.
func (j *job) run(ctx context.Context, world *mpi.Comm) error {
	var user mam.UserFunc
	if j.finest > 0 {
		user = j.bring
	}
	j.grid, j.done = newGrid(j.wide, j.high, j.base), make([]phase, j.phases)
	m, role, err := mam.Init(ctx, world, mam.Config{}, user)
	if err != nil {
		return err
	}
	return errors.Join(j.follow(m, role), m.Finalize())
}

func (j *job) follow(m *mam.Module, role mam.Role) error {
	if role == mam.Source {
		if err := j.begin(m.Comm()); err != nil {
			return err
		}
	}
	if err := j.register(m); err != nil {
		return err
	}
	if role == mam.Target {
		if err := j.resized(m); err != nil {
			return err
		}
	}
	for j.began = time.Now(); j.Step < j.phases*j.steps; {
		if err := j.step(); err != nil {
			return err
		}
		if err := j.checkpoint(m); err != nil {
			return err
		}
	}
	return j.report()
}

// begin fills the basin. Collective.
func (j *job) begin(comm *mpi.Comm) error {
	for level := 0; ; level++ {
		patches, cells, err := j.shares(comm.Size())
		if err != nil {
			return err
		}
		j.cells = make([]cell, cells[comm.Rank()].len())
		if err := j.settle(comm); err != nil {
			return err
		}
		for p := patches[comm.Rank()].from; p < patches[comm.Rank()].to; p++ {
			j.fill(p, j.of(j.cells, p))
		}
		if level == j.finest {
			break
		}
		if _, err := j.refine(j.finest); err != nil {
			return err
		}
	}
	all, err := j.gather()
	if err != nil {
		return err
	}
	if comm.Rank() == 0 {
		j.Mass = j.mass(all)
	}
	j.Start = comm.Size()
	if j.Mass, err = mpi.BcastOne(comm, j.Mass, 0); err != nil {
		return err
	}
	if name := os.Getenv("GOMPI_JOB"); name != "" && j.pause > 0 && comm.Rank() == 0 {
		fmt.Fprintf(j.out, "try: gompictl resize %s +2\n", name)
	}
	return j.picture()
}

// register gives the data to the module, or, on a newcomer, takes it. A layout is a rule
// that holds until data is registered anew; so cells whose patches are refined from time
// to time are brought by the user function instead. Local.
func (j *job) register(m *mam.Module) error {
	if err := mam.ReplicatedOne(m, "state", &j.state, mam.Variable); err != nil {
		return err
	}
	if err := mam.Replicated(m, "phases", &j.done, mam.Variable); err != nil {
		return err
	}
	if j.finest > 0 {
		return nil
	}
	return mam.Distributed(m, "cells", &j.cells, j.grid.cells(), mam.Variable)
}

// bring is the user function: it moves the cells of an adaptive grid from sources to
// targets, beside what there is, as the change may still be rolled back.
func (j *job) bring(u *mam.User) error {
	levels := append([]uint8(nil), j.levels...)
	if err := mpi.Bcast(u.Comm, levels, 0); err != nil {
		return err
	}
	g := *j.grid
	g.levels = levels
	from, to := make([]span, u.Comm.Size()), make([]span, u.Comm.Size())
	_, before, err := g.shares(u.NS)
	if err != nil {
		return err
	}
	_, after, err := g.shares(u.ND)
	if err != nil {
		return err
	}
	for rank, at := range u.Sources {
		from[at] = before[rank]
	}
	for rank, at := range u.Targets {
		to[at] = after[rank]
	}
	cells, err := move(u.Comm, j.cells, from, to)
	j.coming = &coming{levels, cells}
	u.Resume()
	return err
}

// step is one step in time.
func (j *job) step() error {
	if j.finest > 0 && j.Step%j.regrid == 0 {
		if _, err := j.refine(j.finest); err != nil {
			return err
		}
	}
	dt, err := j.advance()
	if err != nil {
		return err
	}
	if !j.valid() {
		return fmt.Errorf("step %d: no water has this depth", j.Step)
	}
	j.Step, j.Time = j.Step+1, j.Time+dt
	if j.frames != "" && j.Step%j.every == 0 {
		if err := j.picture(); err != nil {
			return err
		}
	}
	time.Sleep(j.pause)
	if j.Step%j.steps > 0 {
		return nil
	}
	return j.ended()
}

// ended notes what a phase took.
func (j *job) ended() error {
	now := time.Now()
	is := phase{j.comm.Size(), j.grid.cells().Elems(), (now.Sub(j.began) - j.lost).Seconds(), j.lost.Seconds()}
	is, err := mpi.BcastOne(j.comm, is, 0)
	k := j.Step/j.steps - 1
	j.done[k], j.began, j.lost = is, now, 0
	if err == nil && j.comm.Rank() == 0 {
		_, err = fmt.Fprintf(j.out, "phase %d: %d ranks, %d cells, %.3f s\n", k+1, is.Ranks, is.Cells, is.Seconds)
	}
	return err
}

// next is how many ranks the phase that begins now is to have; 0: none does, or as many
// as there are.
func (j *job) next() int {
	k := j.Step / j.steps
	switch {
	case j.Step%j.steps > 0 || k == j.phases:
		return 0
	case j.plan != nil:
		return j.plan[k]
	case j.grow:
		return min(k+1, j.most) * j.Start
	}
	return 0
}

// checkpoint adopts a change: one for which the next phase waits, or one that others have
// asked for.
func (j *job) checkpoint(m *mam.Module) error {
	how, start := mam.Check, time.Now()
	if n := j.next(); n > 0 && n != m.Comm().Size() {
		how = mam.Wait
		if err := m.SetTarget(n); err != nil {
			return err
		}
	}
	state, err := m.Checkpoint(how)
	if err != nil || state != mam.Completed {
		return err
	}
	if err := j.resized(m); err != nil {
		return err
	}
	j.lost += time.Since(start)
	return nil
}

// resized goes on with the ranks that there are now.
func (j *job) resized(m *mam.Module) error {
	if j.finest > 0 {
		g := *j.grid
		g.levels = j.coming.levels
		j.grid, j.cells, j.coming = &g, j.coming.cells, nil
	}
	t := m.Times()
	if m.Comm().Rank() == 0 {
		if _, err := fmt.Fprintf(j.out, "step %d: %d ranks, %d before; the change took %v\n", j.Step, t.ND, t.NS, t.Total.Round(10*time.Microsecond)); err != nil {
			return err
		}
	}
	return j.settle(m.Comm())
}

// report says how it has ended. Collective.
func (j *job) report() error {
	all, err := j.gather()
	if err != nil || j.comm.Rank() != 0 {
		return err
	}
	mass := j.mass(all)
	fmt.Fprintf(j.out, "%d steps to time %.6f, %d cells by %d ranks, checksum %016x, water lost %.1e\n",
		j.Step, j.Time, len(all), j.comm.Size(), checksum(all), math.Abs(mass/j.Mass-1))
	if j.over != nil {
		j.over(all)
	}
	if j.grow {
		j.gains(j.out)
	}
	if j.chart == "" {
		return nil
	}
	return os.WriteFile(j.chart, strip(j.done), 0o666)
}

// checksum is one of all bits.
func checksum(cells []cell) uint64 {
	h, b := fnv.New64a(), make([]byte, 24)
	for _, c := range cells {
		for i, v := range [3]float64{c.H, c.HU, c.HV} {
			binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(v))
		}
		h.Write(b)
	}
	return h.Sum64()
}
