// SPDX-License-Identifier: Apache-2.0

// Command survive computes pi in rounds, and goes on when ranks die: the
// survivors find each other, agree on how far they are, and share the work anew.
//
//	gompirun --ft -np 4 survive --rounds 20 --kill 2@5 --kill 0@9
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"

	"github.com/spf13/pflag"

	"gompi/examples/options"
	"gompi/mpi"
)

func main() {
	rounds := pflag.Int("rounds", 20, "number of rounds")
	steps := pflag.Int("steps", 1_000_000, "rectangles of a round")
	kills := pflag.StringArray("kill", nil, "RANK@ROUND: that rank dies in the middle of that round")
	options.Parse()
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		if *rounds < 1 || *steps < 1 {
			return fmt.Errorf("--rounds %d, --steps %d: one is not above 0", *rounds, *steps)
		}
		j := job{comm: world, rounds: *rounds, steps: *steps, dies: -1}
		for _, k := range *kills {
			var rank, round int
			if _, err := fmt.Sscanf(k, "%d@%d", &rank, &round); err != nil {
				return fmt.Errorf("--kill %s is not RANK@ROUND", k)
			}
			if rank == world.Rank() {
				j.dies = round
			}
		}
		if err := j.run(); err != nil || j.comm.Rank() > 0 {
			return err
		}
		_, err := fmt.Printf("pi is %.12f, error %.1e, by %d of %d ranks\n", j.sum, math.Abs(j.sum-math.Pi), j.comm.Size(), world.Size())
		return err
	})
}

// job is what a rank knows of the computation.
type job struct {
	comm          *mpi.Comm
	rounds, steps int
	dies          int // in this round; -1: not

	// What is done. Both only grow, so of several states the greatest numbers
	// are the latest state.
	round int
	sum   float64
}

func (j *job) run() error {
	for j.round < j.rounds {
		err := j.step()
		if failed(err) {
			err = j.recover()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// step does a round. It may fail on some ranks and not on others.
func (j *job) step() error {
	if j.round == j.dies {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	part, err := mpi.AllreduceOne(j.comm, j.area(), mpi.Sum)
	if err == nil {
		j.round++
		j.sum += part
	}
	return err
}

// recover goes on with the survivors from the latest state that any of them has.
func (j *job) recover() error {
	for {
		dead, err := j.comm.SyncFailed()
		if err != nil {
			return err
		}
		living, err := j.comm.Group().Excl(dead)
		if err != nil {
			return err
		}
		// Another may die meanwhile, and not all may know of it: then this
		// fails, or what follows, and all who live come here again.
		comm, err := mpi.CommFromGroup(living, "survivors")
		if err == nil {
			state := []float64{float64(j.round), j.sum}
			if err = mpi.Allreduce(comm, state, state, mpi.Max); err == nil {
				j.comm, j.round, j.sum = comm, int(state[0]), state[1]
				return nil
			}
		}
		if !failed(err) {
			return err
		}
	}
}

// failed reports whether an operation has failed because a rank has died.
func failed(err error) bool {
	return errors.Is(err, mpi.ErrProcFailed) || errors.Is(err, mpi.ErrAborted)
}

// area sums up this rank's rectangles of the round.
func (j *job) area() float64 {
	width := 1 / (float64(j.steps) * float64(j.rounds))
	sum := 0.0
	for i := j.comm.Rank(); i < j.steps; i += j.comm.Size() {
		x := (float64(j.round*j.steps+i) + 0.5) * width
		sum += 4 / (1 + x*x)
	}
	return sum * width
}
