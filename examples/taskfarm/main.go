// SPDX-License-Identifier: Apache-2.0

// Command taskfarm looks for the longest Collatz sequence: rank 0, the master, hands out
// intervals of numbers, the others are workers, who come and go as they like:
//
//	gompirun -np 3 taskfarm
//	gompictl resize JOB +2       # in another terminal; JOB is the first thing it prints
//
// A farm has no iterations that all go through together. So nobody may be handed a change
// while another waits for a message of his: a worker says to the master that it was
// handed one, and the master answers everybody before it adopts it itself.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"gompi/examples/options"
	"gompi/mpi"
	"gompi/sessions"
)

func main() {
	limit := pflag.Int64("limit", 3_000_000, "look at the numbers below this one")
	size := pflag.Int64("task", 5000, "numbers in one task")
	pause := pflag.Duration("pause", 50*time.Millisecond, "rest after each task, to be watched")
	options.Parse()
	mpi.Main(func(ctx context.Context, world *mpi.Comm) error {
		if *limit < 2 || *limit > 1<<33 || *size < 1 {
			return fmt.Errorf("--limit %d is not between 2 and 2^33, or --task %d is not above 0", *limit, *size)
		}
		f := &farm{comm: world, limit: *limit, size: *size, pause: *pause}
		return f.run(ctx)
	})
}

// farm is what a process knows of it.
type farm struct {
	comm        *mpi.Comm // of those who take part just now
	watch       *sessions.Watcher
	limit, size int64
	pause       time.Duration
}

func (f *farm) run(ctx context.Context) error {
	c, err := sessions.Joined(ctx)
	if err != nil {
		return err
	}
	if c != nil { // a change has started it
		if f.comm, err = c.Commit(ctx); err != nil {
			return err
		}
	}
	if f.watch, err = sessions.Watch(ctx, "gompi://main", sessions.Options{}); err != nil {
		return err
	}
	// The last ranks leave: rank 0 is the same process all the time.
	if f.comm.Rank() == 0 {
		err = newMaster(f).run(ctx)
	} else {
		err = f.work(ctx)
	}
	return errors.Join(err, f.watch.Close())
}

// adopt goes on with a change. If that is rolled back all is as it was.
func (f *farm) adopt(ctx context.Context, c *sessions.Change) (adopted bool, err error) {
	comm, err := c.Commit(ctx)
	if errors.Is(err, sessions.ErrRolledBack) {
		return false, nil // a process of the change has died
	}
	if err != nil {
		return false, err // ErrLeaving, which mpi.Main takes as the good end that it is
	}
	was := f.comm
	f.comm = comm
	return true, was.Free()
}
