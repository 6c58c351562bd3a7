// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"time"

	"gompi/bench/report"
	"gompi/mpi"
)

// FirstOptions are the options of First. They must be equal on all ranks.
type FirstOptions struct {
	// Calls of each operation on a communicator; 0 means DefaultFirstCalls.
	Calls int
	// Rounds is the number of communicators made in each way for each operation; 0 means
	// DefaultFirstRounds.
	Rounds int
	// Transport is the name that results carry; "": as Options.
	Transport string
}

// Values for 0 in FirstOptions.
const (
	DefaultFirstCalls  = 3
	DefaultFirstRounds = 20
)

// Kinds of communicators whose first calls a result of First describes.
const (
	OfJob       = "job"       // of a job that has just started: one sample
	OfDuplicate = "duplicate" // of world, by Dup
	OfGroup     = "group"     // of world's processes, by CommFromGroup
)

// firstMakers are the ways to a new communicator.
var firstMakers = [...]firstMaker{
	{OfDuplicate, func(world *mpi.Comm) (*mpi.Comm, error) { return world.Dup() }},
	{OfGroup, func(world *mpi.Comm) (*mpi.Comm, error) { return mpi.CommFromGroup(world.Group(), "gompibench first") }},
}

type firstMaker struct {
	of   string
	make func(world *mpi.Comm) (*mpi.Comm, error)
}

// firstOps are the operations whose first calls are timed.
func firstOps() []firstOp {
	sum, total := make([]float64, 1), make([]float64, 1)
	return []firstOp{
		{"first_barrier", 0, func(c *mpi.Comm) error { return c.Barrier() }},
		{"first_allreduce", 8, func(c *mpi.Comm) error { return mpi.Allreduce(c, sum, total, mpi.Sum) }},
	}
}

type firstOp struct {
	name  string
	bytes int64
	call  func(c *mpi.Comm) error
}

// First measures calls on new communicators, by rank 0's clock: the first barriers and
// small allreduces of the job, of duplicates of world and of communicators made from its
// group, and the time to make and to free those. The first call of a job also waits for
// ranks that still start, so First must be the program's first call; the first call on a
// communicator from a group also waits for ranks that still make it. All ranks begin to
// make one at the same time.
//
// It is collective over world; emit is called on rank 0, and its error ends the run. ctx
// ends it between two rounds. Errors: those of communication.
func First(ctx context.Context, world *mpi.Comm, o FirstOptions, emit func(report.Result) error) error {
	if o.Calls < 0 || o.Rounds < 0 {
		return fmt.Errorf("bench: first: %d calls, %d rounds", o.Calls, o.Rounds)
	}
	if o.Calls == 0 {
		o.Calls = DefaultFirstCalls
	}
	if o.Rounds == 0 {
		o.Rounds = DefaultFirstRounds
	}
	tell := func(name, of string, bytes int64, call int, usec []float64) error {
		if world.Rank() != 0 {
			return nil
		}
		r := report.Result{Bench: name, Transport: o.Transport, Ranks: world.Size(), Bytes: bytes, First: &report.First{Of: of, Call: call}}
		if r.Transport == "" {
			r.Transport = Carrier(world)
		}
		r.SetTimes(usec)
		return emit(r)
	}
	for _, op := range firstOps() {
		for i := range o.Calls {
			var usec float64
			if err := stopwatch(&usec, func() error { return op.call(world) }); err != nil {
				return err
			}
			if err := tell(op.name, OfJob, op.bytes, i+1, []float64{usec}); err != nil {
				return err
			}
		}
	}
	for _, m := range firstMakers {
		var makes, frees []float64
		for _, op := range firstOps() {
			usec := make([][]float64, o.Calls)
			for range o.Rounds {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				made, freed, err := firstRound(world, m, op, usec)
				if err != nil {
					return err
				}
				makes, frees = append(makes, made), append(frees, freed)
			}
			for i, u := range usec {
				if err := tell(op.name, m.of, op.bytes, i+1, u); err != nil {
					return err
				}
			}
		}
		if err := tell("first_make", m.of, 0, 0, makes); err != nil {
			return err
		}
		if err := tell("first_free", m.of, 0, 0, frees); err != nil {
			return err
		}
	}
	return nil
}

// firstRound makes a communicator, calls op on it and frees it. It adds the time of each
// call to usec, by call, and returns the times to make and to free it.
func firstRound(world *mpi.Comm, m firstMaker, op firstOp, usec [][]float64) (made, freed float64, err error) {
	if err := world.Barrier(); err != nil {
		return 0, 0, err
	}
	var c *mpi.Comm
	if err := stopwatch(&made, func() (err error) { c, err = m.make(world); return err }); err != nil {
		return 0, 0, err
	}
	for i := range usec {
		var u float64
		if err := stopwatch(&u, func() error { return op.call(c) }); err != nil {
			return 0, 0, err
		}
		usec[i] = append(usec[i], u)
	}
	err = stopwatch(&freed, c.Free)
	return made, freed, err
}

// stopwatch stores the time of body in usec, in microseconds.
func stopwatch(usec *float64, body func() error) error {
	t := time.Now()
	err := body()
	*usec = float64(time.Since(t).Nanoseconds()) / 1e3
	return err
}
