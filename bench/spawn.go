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

// SpawnOptions are the options of Spawn. They must be equal on all ranks, also on spawned
// ones.
type SpawnOptions struct {
	// Counts are the numbers of processes to spawn at a time.
	Counts []int
	// Rounds is the number of measurements of each count; 0 means DefaultSpawnRounds.
	Rounds int
	// Pause is the time between two rounds, for the processes to end; 0: none.
	Pause time.Duration
	// Transport is the name that results carry; "": as Options.
	Transport string
	// Program is the program to spawn; "": that of this process.
	Program string
}

// DefaultSpawnRounds is the value for Rounds 0.
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
// have joined, and then IntercommMerge. Parents and children disconnect afterwards. It is
// collective over world and over the children, which call it first. emit is called on rank
// 0 of the parents, and its error ends the run there. Errors: invalid options, those of
// CommSpawn and of communication.
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

// mergeAndPart merges parents and children, and frees their common communicators. by is
// the name of the transport between them.
func mergeAndPart(c *mpi.Comm, high bool) (merged time.Duration, by string, err error) {
	began := time.Now()
	m, err := c.IntercommMerge(high)
	if err != nil {
		return 0, "", err
	}
	merged, by = time.Since(began), Carrier(m)
	return merged, by, errors.Join(m.Disconnect(), c.Disconnect())
}
