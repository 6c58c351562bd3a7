// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/pflag"

	"gompi/bench"
	"gompi/mpi"
)

// shmCommand is a parsed `gompibench tune shm`.
type shmCommand struct {
	opt      bench.WaysOptions
	into     string
	progress bool
}

func (c *shmCommand) flags() *pflag.FlagSet {
	f := newFlagSet("tune shm")
	f.StringVar(&c.into, "into", "", "`FILE` to write the table to (default: standard output)")
	f.IntVar(&c.opt.Rounds, "rounds", bench.DefaultWaysRounds, "rounds in which all ways and lengths take turns, of about 40 ms")
	f.DurationVar(&c.opt.Both, "until-both", 0, "go on, for as long as this at most, until all have been seen near and far")
	progressFlag(f, &c.progress)
	return f
}

// parseShm reads the arguments after "tune shm".
func parseShm(args []string) (*shmCommand, error) {
	c := &shmCommand{}
	f := c.flags()
	if err := parseNoArgs(f, args); err != nil {
		return nil, err
	}
	if err := checkTurns(c.opt.Rounds, c.opt.Both); err != nil {
		return nil, err
	}
	return c, nil
}

func runWays(args []string) {
	c, err := parseShm(args)
	exitOn(err, waysUsage)
	if !launched() {
		exit(launch(2, c.progress))
	}
	mpi.Main(c.run)
}

func waysUsage() string {
	return "usage: gompibench tune shm [flags]   (starts itself under gompirun)\n\n" +
		"Measures between two ranks of this host from which length on payloads are to go past the\n" +
		"cache, and up to which transfers are pushed, or copied by the receiver alone: in each state\n" +
		"of the machine that it sees (the processors of the ranks share a cache, or not). Writes a\n" +
		"table for gompirun --shm-table. What was measured before ^C is written.\n\nflags:\n" +
		new(shmCommand).flags().FlagUsages()
}

// run runs in each rank.
func (c *shmCommand) run(ctx context.Context, world *mpi.Comm) error {
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	bar := progressBar{on: c.progress, w: os.Stderr}
	c.opt.Progress = func(done, total int) { bar.show("rounds", done, total) }
	table, err := bench.TuneWays(ctx, world, c.opt)
	if world.Rank() != 0 {
		return err
	}
	bar.clear()
	if table == "" {
		return err
	}
	if c.into == "" {
		_, werr := io.WriteString(os.Stdout, table)
		return errors.Join(err, werr)
	}
	return errors.Join(err, replaceFile(c.into, table))
}
