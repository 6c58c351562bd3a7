// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"gompi/bench"
	"gompi/mpi"
)

// waysCommand is a parsed `gompibench tune shm`.
type waysCommand struct {
	opt      bench.WaysOptions
	into     string
	progress bool
}

func (c *waysCommand) flags() *pflag.FlagSet {
	f := ownFlags("tune shm")
	f.StringVar(&c.into, "into", "", "`FILE` to write the table to (default: standard output)")
	f.IntVar(&c.opt.Rounds, "rounds", bench.DefaultWaysRounds, "rounds in which all ways and lengths take turns, of about 40 ms")
	f.DurationVar(&c.opt.Both, "until-both", 0, "go on, for as long as this at most, until all have been seen near and far")
	f.BoolVar(&c.progress, "progress", isTerminal(os.Stderr), "show on stderr how far it is (default: if it is a terminal)")
	return f
}

// parseWays reads the arguments after "tune shm".
func parseWays(args []string) (*waysCommand, error) {
	c := &waysCommand{}
	f := c.flags()
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case f.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case c.opt.Rounds < 1 || c.opt.Both < 0:
		return nil, fmt.Errorf("--rounds %d must be at least 1, --until-both %v not negative", c.opt.Rounds, c.opt.Both)
	}
	return c, nil
}

func runWays(args []string) {
	c, err := parseWays(args)
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
		new(waysCommand).flags().FlagUsages()
}

// run is the program of each rank.
func (c *waysCommand) run(ctx context.Context, world *mpi.Comm) error {
	// An interrupt is the end at the next round, not of the process.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, unix.SIGTERM)
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
