// SPDX-License-Identifier: Apache-2.0

// Command elastic follows heat along a line while processes come and go:
//
//	gompirun -np 2 elastic
//	gompictl resize JOB +2       # in another terminal; JOB is the first thing it prints
//
// Each rank has a block of the line, and says in every step how far it is. When the
// job is to have another size all learn of it in the same step, without a collective,
// share the line anew, and go on.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"gompi/examples/options"
	"gompi/mpi"
	"gompi/sessions"
)

func main() {
	n := pflag.Int("n", 10000, "points of the line")
	steps := pflag.Int("steps", 3000, "steps in time")
	pause := pflag.Duration("pause", 10*time.Millisecond, "rest after each step, to be watched")
	options.Parse()
	mpi.Main(func(ctx context.Context, world *mpi.Comm) error {
		if *n < 2 || *steps < 1 {
			return fmt.Errorf("--n %d, --steps %d: at least 2 points and 1 step", *n, *steps)
		}
		j := &job{comm: world, n: *n}
		if err := j.begin(ctx); err != nil {
			return err
		}
		return j.run(ctx, *steps, *pause)
	})
}

// job is what a rank knows of the computation.
type job struct {
	comm *mpi.Comm // of those who take part just now
	n    int
	step int // which this is, from 0 on
	line line
}

// begin is where a process comes in: at the start, or later with a change.
func (j *job) begin(ctx context.Context) error {
	c, err := sessions.Joined(ctx)
	if err != nil {
		return err
	}
	if c != nil {
		return j.adopt(ctx, c)
	}
	j.line = newLine(j.n, j.comm.Rank(), j.comm.Size())
	if name := os.Getenv("GOMPI_JOB"); name != "" && j.comm.Rank() == 0 {
		_, err = fmt.Printf("try: gompictl resize %s +2\n", name)
	}
	return err
}

func (j *job) run(ctx context.Context, steps int, pause time.Duration) error {
	// The main set: gompictl changes it if no other is named. What comes of a change
	// is the main set then, so this is said once.
	w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
	if err != nil {
		return err
	}
	for ; j.step < steps; j.step++ {
		if err := j.line.advance(j.comm); err != nil {
			return err
		}
		time.Sleep(pause)
		c, err := w.Check(j.step)
		if err != nil {
			return err
		}
		if c == nil {
			continue
		}
		// On every rank this is the same step.
		if err := j.adopt(ctx, c); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), j.tell(steps, "the end"), j.comm.Free())
}

// adopt makes the change on this rank: a leaver hands over its part of the line
// before, a newcomer gets one after.
func (j *job) adopt(ctx context.Context, c *sessions.Change) error {
	was, have := j.comm, j.line
	stay, _ := c.Ranks()
	switch {
	case c.Role == sessions.Joining:
		have = line{n: j.n}
	case c.Leaving != "":
		var err error
		if have, err = j.line.leave(was, stay); err != nil {
			return err
		}
	}
	comm, err := c.Commit(ctx)
	if errors.Is(err, sessions.ErrRolledBack) && c.Role != sessions.Joining {
		return nil // a process of the change has died: all go on as before
	}
	if err != nil {
		return err // for a leaver ErrLeaving, which mpi.Main takes as the good end that it is
	}
	// The processes that stay have the lower ranks, in the old order.
	if j.line, err = have.share(comm, len(stay)); err != nil {
		return err
	}
	j.comm = comm
	if c.Role != sessions.Joining {
		return errors.Join(j.tell(j.step+1, fmt.Sprintf("%d ranks before", was.Size())), was.Free())
	}
	if j.step, err = c.Iteration(ctx); err == nil {
		err = j.tell(j.step+1, "")
	}
	j.step++
	return err
}

// tell prints how far the job is, and how well it does.
func (j *job) tell(done int, more string) error {
	worst, err := mpi.AllreduceOne(j.comm, j.line.worst(done), mpi.Max)
	if err == nil && j.comm.Rank() == 0 {
		_, err = fmt.Printf("%d steps, %d points by %d ranks, error %.1e: %s\n", done, j.n, j.comm.Size(), worst, more)
	}
	return err
}
