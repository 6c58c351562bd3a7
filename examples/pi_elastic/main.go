// SPDX-License-Identifier: Apache-2.0

// Command pi_elastic computes pi in rounds, each by the processes that there are just
// then:
//
//	gompirun -np 2 pi_elastic
//	gompictl resize JOB +2       # in another terminal; JOB is the first thing it prints
//
// It follows changes by the three calls of package sessions/dyn: the first process
// receives a change and makes the set that the job is to be, all integrate it, and make
// a communicator of the new set.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/spf13/pflag"

	"gompi/examples/options"
	"gompi/mpi"
	"gompi/sessions"
	"gompi/sessions/dyn"
)

func main() {
	rounds := pflag.Int("rounds", 3000, "number of rounds, of which each adds its part of pi")
	steps := pflag.Int("steps", 100_000, "rectangles of a round")
	pause := pflag.Duration("pause", 10*time.Millisecond, "rest after each round, to be watched")
	options.Parse()
	mpi.Main(func(ctx context.Context, _ *mpi.Comm) error {
		if *rounds < 1 || *steps < 1 {
			return fmt.Errorf("--rounds %d, --steps %d: one is not above 0", *rounds, *steps)
		}
		return (&job{rounds: *rounds, steps: *steps, pause: *pause}).run(ctx)
	})
}

// mainSet is what gompictl resize changes.
const mainSet = "gompi://main"

// job is what a process knows of the computation.
type job struct {
	rounds, steps int
	pause         time.Duration

	session *dyn.Session
	comm    *mpi.Comm // of those who take part just now
	set     string    // of these
	state
}

// state is how far the computation is: all that a newcomer has to be told.
type state struct {
	Round int
	Sum   float64
}

func (j *job) run(ctx context.Context) (err error) {
	if j.session, err = dyn.Open(ctx, mainSet); err != nil {
		return err
	}
	if err = j.begin(ctx); err == nil {
		err = j.compute(ctx)
	}
	if errors.Is(err, errLeaves) {
		err = nil
	}
	return errors.Join(err, j.session.Close())
}

// begin is where a process comes in: at the start, or later with a change.
func (j *job) begin(ctx context.Context) error {
	mine, err := j.session.Receive("mpi://self")
	if err != nil {
		return err
	}
	if mine.Type != dyn.None { // a change has started it
		return j.integrate(ctx, mine, "")
	}
	if err := j.gather(ctx, mainSet); err != nil {
		return err
	}
	if name := os.Getenv("GOMPI_JOB"); name != "" && j.comm.Rank() == 0 {
		fmt.Printf("try: gompictl resize %s +2\n", name)
	}
	return nil
}

// compute adds rounds until all are done.
func (j *job) compute(ctx context.Context) error {
	for j.Round < j.rounds {
		part, err := mpi.AllreduceOne(j.comm, j.area(), mpi.Sum)
		if err != nil {
			return err
		}
		j.Sum += part
		j.Round++
		time.Sleep(j.pause)
		if err := j.follow(ctx); err != nil {
			return err
		}
	}
	return errors.Join(j.tell("the end"), j.comm.Free())
}

// area sums up this process's rectangles of a round: every size-th of those of the
// round, which has every rounds-th of all, by the midpoint rule.
func (j *job) area() float64 {
	width := 1 / (float64(j.rounds) * float64(j.steps))
	sum := 0.0
	for i := j.comm.Rank(); i < j.steps; i += j.comm.Size() {
		x := (float64(i)*float64(j.rounds) + float64(j.Round) + 0.5) * width
		sum += 4 / (1 + x*x)
	}
	return sum * width
}

// follow finds out whether there is a change: the first process asks, and tells all.
func (j *job) follow(ctx context.Context) error {
	var c dyn.Change
	var set string
	var err error
	if j.comm.Rank() == 0 {
		if c, err = j.session.Receive(mainSet); err != nil {
			return err
		}
		switch c.Type {
		case dyn.Add:
			set, err = j.session.CreateOp(dyn.Union, mainSet, c.Delta, nil)
		case dyn.Sub:
			set, err = j.session.CreateOp(dyn.Difference, mainSet, c.Delta, nil)
		}
		if err != nil {
			return err
		}
	}
	delta, err := mpi.BcastNew(j.comm, []byte(c.Delta), 0)
	if err != nil || len(delta) == 0 {
		return err
	}
	c.Delta = string(delta)
	before, held := j.comm, j.set
	err = j.integrate(ctx, c, set)
	if errors.Is(err, sessions.ErrRolledBack) {
		return nil // a process of the change has died: all go on as before
	}
	if err != nil {
		return err
	}
	return errors.Join(j.tell(fmt.Sprintf("%d ranks before", before.Size())), before.Disconnect(), j.session.Sessions().Release(held))
}

// errLeaves: this process is not in the new set.
var errLeaves = errors.New("this process leaves")

// integrate goes on with a change as all others do, also those that come and those that
// leave. The process that made the set publishes its name; all others look it up.
func (j *job) integrate(ctx context.Context, c dyn.Change, set string) error {
	leaves, err := j.session.Integrate(ctx, c.Delta, set != "", &set, nil)
	if err != nil {
		return err
	}
	if leaves {
		return errLeaves
	}
	if err := j.gather(ctx, set); err != nil {
		return err
	}
	// The first process was there before, so its state is that of the job.
	j.state, err = mpi.BcastOne(j.comm, j.state, 0)
	return err
}

// gather makes the communicator of a set.
func (j *job) gather(ctx context.Context, set string) error {
	g, err := j.session.Sessions().Group(set)
	if err == nil {
		j.comm, err = mpi.CommFromGroup(g.WithContext(ctx), "pi")
	}
	j.set = set
	return err
}

// tell prints how far the job is.
func (j *job) tell(more string) error {
	if j.comm.Rank() > 0 {
		return nil
	}
	done := ""
	if j.Round == j.rounds {
		done = fmt.Sprintf(", error %.1e", math.Abs(j.Sum-math.Pi))
	}
	_, err := fmt.Printf("%d rounds by %d ranks, sum %.12f%s: %s\n", j.Round, j.comm.Size(), j.Sum, done, more)
	return err
}
