// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gompi/bench/report"
	"gompi/mpi"
)

// SpawnOptions say how Spawn measures. They must be equal on all ranks, and on those that
// are spawned.
type SpawnOptions struct {
	// Counts are how many processes are spawned at a time.
	Counts []int
	// Rounds is how often each of them; 0 means DefaultSpawnRounds.
	Rounds int
	// Pause is between the end of a round and the next, for the processes to end; 0:
	// the next begins at once.
	Pause time.Duration
	// Transport is the name that results carry; "": as Options.
	Transport string
	// Program is what is spawned; "": what this process runs.
	Program string
}

// DefaultSpawnRounds is what Rounds 0 means.
const DefaultSpawnRounds = 5

func (o *SpawnOptions) validate() error {
	if len(o.Counts) == 0 || o.Rounds < 0 || o.Pause < 0 {
		return fmt.Errorf("bench: spawn: counts %v, %d rounds, a pause of %v", o.Counts, o.Rounds, o.Pause)
	}
	for _, n := range o.Counts {
		if n < 1 {
			return fmt.Errorf("bench: spawn: count %d is not above 0", n)
		}
	}
	return nil
}

// Spawn measures CommSpawn of world, root 0, until it returns, which is when all children
// have joined; and the IntercommMerge after it. Parents and children part again by
// Disconnect. It is collective over world, and over what is spawned, which calls it as its
// first; emit is called on rank 0 of the parents, and its error ends the run there.
// Errors: options that cannot be, those of CommSpawn and of communication.
func Spawn(ctx context.Context, world *mpi.Comm, o SpawnOptions, emit func(report.Result) error) error {
	if o.Rounds == 0 {
		o.Rounds = DefaultSpawnRounds
	}
	if err := o.validate(); err != nil {
		return err
	}
	parent, err := world.Process().Parent()
	if err != nil {
		return err
	}
	if parent != nil {
		_, _, err := mergeAndPart(parent, true)
		return err
	}
	carrier := ""
	for _, n := range o.Counts {
		var sample []report.Spawn
		for i := range o.Rounds {
			if i > 0 && o.Pause > 0 {
				select {
				case <-time.After(o.Pause):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			s := report.Spawn{Count: n}
			began := time.Now()
			c, _, err := mpi.CommSpawn(world, mpi.Command{Program: o.Program, Procs: n}, 0)
			if err != nil {
				return err
			}
			s.Msec = msec(int64(time.Since(began)))
			var merged time.Duration
			if merged, carrier, err = mergeAndPart(c, false); err != nil {
				return err
			}
			s.MergeMsec = msec(int64(merged))
			sample = append(sample, s)
		}
		if world.Rank() != 0 {
			continue
		}
		r := report.Result{Bench: "spawn", Transport: cmp.Or(o.Transport, carrier), Ranks: world.Size()}
		r.SetSpawn(sample)
		if err := emit(r); err != nil {
			return err
		}
	}
	return nil
}

// mergeAndPart merges parents and children, and ends all that they have in common. by is
// what has carried their messages.
func mergeAndPart(c *mpi.Comm, high bool) (merged time.Duration, by string, err error) {
	began := time.Now()
	m, err := c.IntercommMerge(high)
	if err != nil {
		return 0, "", err
	}
	merged, by = time.Since(began), Carrier(m)
	return merged, by, errors.Join(m.Disconnect(), c.Disconnect())
}
