// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"gompi/bench"
	"gompi/bench/report"
	"gompi/mpi"
)

// firstCommand is a parsed `gompibench first`.
type firstCommand struct {
	opt  bench.FirstOptions
	json bool
	np   int
}

func (c *firstCommand) flags() *pflag.FlagSet {
	f := newFlagSet("first")
	f.IntVar(&c.opt.Calls, "calls", bench.DefaultFirstCalls, "calls of each operation that are timed on a new communicator")
	f.IntVar(&c.opt.Rounds, "rounds", bench.DefaultFirstRounds, "communicators made in each way for each operation")
	f.IntVar(&c.np, "np", 2, "ranks, when started without gompirun")
	outputFlags(f, &c.json, &c.opt.Transport)
	return f
}

// parseFirst reads the arguments after "first".
func parseFirst(args []string) (*firstCommand, error) {
	c := &firstCommand{}
	f := c.flags()
	if err := parseNoArgs(f, args); err != nil {
		return nil, err
	}
	if c.opt.Calls < 1 || c.opt.Rounds < 1 || c.np < 1 {
		return nil, fmt.Errorf("--calls %d, --rounds %d and --np %d must be at least 1", c.opt.Calls, c.opt.Rounds, c.np)
	}
	return c, nil
}

func runFirst(args []string) {
	c, err := parseFirst(args)
	exitOn(err, firstUsage)
	if !launched() {
		exit(launch(c.np, false))
	}
	mpi.Main(c.run)
}

func firstUsage() string {
	return "usage: gompirun -np N gompibench first [flags]\n" +
		"       gompibench first [flags]   (starts itself under gompirun)\n\n" +
		"Measures the first calls of a job and of communicators that have just been made (barrier,\n" +
		"allreduce of 8 bytes), by Dup and by CommFromGroup, and these and Free, by rank 0's clock.\n" +
		"The job's first barrier also waits for ranks that still start, the others' for those that\n" +
		"still make the communicator.\n\nflags:\n" +
		new(firstCommand).flags().FlagUsages()
}

// run runs in each rank.
func (c *firstCommand) run(ctx context.Context, world *mpi.Comm) error {
	return bench.First(ctx, world, c.opt, printer(c.json, report.Header, report.Row))
}
