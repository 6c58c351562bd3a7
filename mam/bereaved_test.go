// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"gompi/internal/test/scenes"
	"gompi/mam"
	"gompi/mpi"
)

// moment is when somebody dies in a change.
type moment int

const (
	coming moment = iota // it has been seen, and newcomers may read
	user                 // in the user phase: constant data is there, nobody has voted
	moving               // from the user phase to behind the decision, at any time
	asked                // it has been asked for, and nobody has seen anything of it
	moments
)

// mourners is the state of a program of four ranks, one of which dies in its first change.
type mourners struct {
	m      *mam.Module
	x      []int32 // variable
	c      []int64 // constant
	step   int
	victim int
	array  bool       // x is an Array
	l      mam.Layout // of x
	phase  int        // calls of the user function
}

// anyTime is for a death between the user phase and the decision, or behind it.
func anyTime() time.Duration { return time.Duration(rand.IntN(3000)) * time.Microsecond }

const iterationTime = 100 * time.Microsecond // others compute, too

var (
	xLayout = mam.Block(40_007) // worth lending
	cLayout = mam.BlockCyclic(503, 11)
)

func (d *mourners) register() error {
	var arrays error
	if d.array {
		arrays = mam.Array(d.m, "x", &d.x, d.l)
		if d.m.Role() == mam.Source { // to newcomers it comes
			put(d.m, d.x, "x", func(i int) int32 { return int32(3 * i) })
		}
	} else {
		if d.m.Role() == mam.Source {
			fill(d.m, &d.x, d.l, func(i int) int32 { return int32(3 * i) })
		}
		arrays = mam.Distributed(d.m, "x", &d.x, d.l)
	}
	if d.m.Role() == mam.Source {
		fill(d.m, &d.c, cLayout, func(i int) int64 { return -int64(i) })
		d.step = 7
	}
	return errors.Join(arrays, mam.Distributed(d.m, "c", &d.c, cLayout, mam.Constant), mam.ReplicatedOne(d.m, "step", &d.step))
}

func (d *mourners) check() error {
	if d.step != 7 {
		return fmt.Errorf("step %d", d.step)
	}
	return errors.Join(
		is(d.m, "x", d.x, func(i int) int32 { return int32(3 * i) }),
		is(d.m, "c", d.c, func(i int) int64 { return -int64(i) }))
}

// bereaved: an old rank, one that stays or one that leaves, dies in the midst of a change
// from four ranks to so many. If that is decided already nothing is missing; else it is
// rolled back, all others have what they had, and the next change, which leaves the dead
// rank out, names what is lost with it, to all.
func bereaved(config mam.Config, to, victim int, when moment, after time.Duration) func(context.Context, *mpi.Comm) error {
	return bereavedOf(xLayout, config, to, victim, when, after)
}

func bereavedOf(l mam.Layout, config mam.Config, to, victim int, when moment, after time.Duration) func(context.Context, *mpi.Comm) error {
	return func(ctx context.Context, world *mpi.Comm) error {
		d := &mourners{victim: victim, array: config.Method == mam.InPlace, l: l}
		die := func() {
			time.Sleep(after) //archtest:sleep death comes at any time
			scenes.Die(ctx)
		}
		phase := func(u *mam.User) error {
			d.phase++
			switch {
			case u.Role == mam.NewRank || u.Comm.Rank() != victim || u.Comm.Size() < 4:
			case when != moving:
				scenes.Die(ctx) // also if the change has come too fast to be seen coming
			case d.phase == 1:
				go die()
			}
			u.Resume()
			return nil
		}
		m, role, err := mam.Init(ctx, world, config, phase)
		if err != nil {
			return err
		}
		defer m.Finalize()
		d.m = m
		if err := d.register(); err != nil {
			return err
		}
		if role == mam.Target && when >= moving {
			return errors.Join(d.check(), m.Finalize()) // death has come too late
		}
		if role == mam.Target {
			return fmt.Errorf("newcomer %d of a change that cannot be", m.Comm().Rank())
		}
		if err := m.SetTarget(to); err != nil {
			return err
		}
		var death mpi.Request
		if world.Rank() != victim {
			death = mpi.Irecv(world, make([]int, 1), victim, 0)
		}
		if err := d.gather(world, when, die); err != nil {
			return err
		}
		for dead := false; !dead; {
			time.Sleep(iterationTime) //archtest:sleep an iteration of the program
			state, err := m.Checkpoint(mam.Check)
			if err == nil {
				err = d.check()
			}
			lost := errors.As(err, new(*mam.LostError)) // by the next change, which others have asked for
			if state == mam.Completed && err == nil || lost {
				_ = death.Cancel() // perhaps it has failed by now
				_, _ = death.Wait()
			}
			switch {
			case lost:
				return d.told(err)
			case err != nil:
				return err // ErrLeaving of a leaver whose time has not come
			case state == mam.Completed:
				return m.Finalize() // with all data
			}
			if world.Rank() == victim {
				if when == coming && state == mam.Pending {
					die()
				}
				continue
			}
			if dead, _, err = death.Test(); dead && !errors.Is(err, mpi.ErrProcFailed) {
				return fmt.Errorf("rank %d has died: %w", victim, err)
			}
		}
		if victim == 0 { // who would have asked for the next change
			return errors.Join(d.check(), m.Finalize())
		}
		return d.lost()
	}
}

// gather keeps the victim alive until all others are in their loops: a slow one could
// still be in Init, which fails without it.
func (d *mourners) gather(world *mpi.Comm, when moment, die func()) error {
	if world.Rank() != d.victim {
		return mpi.SendOne(world, 0, d.victim, 1)
	}
	for range world.Size() - 1 {
		if _, _, err := mpi.RecvOne[int](world, mpi.AnySource, 1); err != nil {
			return err
		}
	}
	if when == asked {
		go die()
	}
	return nil
}

// lost is the next change: all learn what is lost.
func (d *mourners) lost() error {
	if err := d.m.SetTarget(2); err != nil {
		return err
	}
	for {
		time.Sleep(iterationTime) //archtest:sleep an iteration of the program
		state, err := d.m.Checkpoint(mam.Check)
		switch {
		case err != nil:
			return d.told(err)
		case state == mam.Completed:
			return fmt.Errorf("%d ranks, without the data of one", d.m.Comm().Size())
		}
		if err := d.check(); err != nil {
			return err
		}
	}
}

// told holds an error against what is lost; all else is there.
func (d *mourners) told(err error) error {
	var lost *mam.LostError
	for i, l := range []mam.Layout{d.l, cLayout} {
		e := &mam.LostError{Name: []string{"x", "c"}[i], Ranks: []int{d.victim}}
		for at, n := range l.Runs(4, d.victim) {
			e.Runs = append(e.Runs, [2]int{at, n})
		}
		if !errors.As(err, &lost) || !strings.Contains(err.Error(), e.Error()) {
			return fmt.Errorf("not what is lost, which is %w: %w", e, err)
		}
	}
	return errors.Join(d.check(), d.m.Finalize())
}
