// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"gompi/bench"
	"gompi/mpi"
)

// tuneCommand is a parsed `gompibench tune`.
type tuneCommand struct {
	opt       bench.TuneOptions
	into      string
	transport string
	np        int
	progress  bool

	// As written.
	bytes string
	msec  int
}

func (c *tuneCommand) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("gompibench tune", pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() {}
	f.StringVar(&c.into, "into", "", "`FILE` of a table to read, extend by what is measured, and write (default: a new one on standard output)")
	f.StringVar(&c.bytes, "bytes", "", "`SIZES`, such as 8,4K,4M (default: those of the benchmarks)")
	f.IntVar(&c.msec, "msec", int(bench.DefaultTuneTime/time.Millisecond), "time of each algorithm at each size, in milliseconds")
	f.IntVar(&c.opt.Rounds, "rounds", bench.DefaultTuneRounds, "rounds in which the algorithms take turns")
	f.IntVar(&c.np, "np", 2, "ranks, when started without gompirun")
	f.StringVar(&c.transport, "transport", "", "what the table's comments call the transport (default: its name); gompirun --transport chooses it")
	progressFlag(f, &c.progress)
	return f
}

// parseTune reads the arguments after "tune".
func parseTune(args []string) (*tuneCommand, error) {
	c := &tuneCommand{}
	f := c.flags()
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if c.msec < 1 || c.opt.Rounds < 1 || c.np < 2 {
		return nil, fmt.Errorf("--msec %d and --rounds %d must be at least 1, --np %d at least 2", c.msec, c.opt.Rounds, c.np)
	}
	c.opt.Time = time.Duration(c.msec) * time.Millisecond
	if f.NArg() > 0 {
		c.opt.Ops = f.Args()
	}
	var err error
	if c.bytes != "" {
		c.opt.Bytes, err = bench.ParseBytes(c.bytes)
	}
	return c, err
}

func runTune(args []string) {
	c, err := parseTune(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		_, err := io.WriteString(os.Stdout, tuneUsage())
		exit(err)
	case err != nil:
		exit(usageError{err})
	}
	if !launched() {
		exit(launch(c.np, c.progress))
	}
	mpi.Main(c.run)
}

func tuneUsage() string {
	return "usage: gompirun -np N gompibench tune [flags] [OPERATION...]\n" +
		"       gompibench tune [flags] [OPERATION...]   (starts itself under gompirun)\n\n" +
		"Measures every algorithm of the collectives (default: of all) on N ranks and writes a\n" +
		"table of the fastest for gompirun --coll-table. Run it at several N with the same --into.\n" +
		"What was measured of whole operations before ^C is written.\n\nflags:\n" +
		new(tuneCommand).flags().FlagUsages()
}

// run runs in each rank.
func (c *tuneCommand) run(ctx context.Context, world *mpi.Comm) error {
	table := ""
	if c.into != "" && world.Rank() == 0 {
		text, err := os.ReadFile(c.into)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		table = string(text)
		// A wrong file must be found before the measurement.
		if _, err := bench.MergeTable(table, c.transport, nil); err != nil {
			return fmt.Errorf("%s: %w", c.into, err)
		}
	}
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	bar := progressBar{on: c.progress, w: os.Stderr}
	c.opt.Progress = func(op string, bytes, done, total int) {
		bar.show(fmt.Sprintf("%s of %d bytes", op, bytes), done, total)
	}
	measured, err := bench.Tune(ctx, world, c.opt)
	if world.Rank() != 0 {
		return err
	}
	bar.clear()
	// The results before an interrupt are worth keeping.
	if c.transport == "" {
		c.transport = bench.Carrier(world)
	}
	table, merr := bench.MergeTable(table, c.transport, measured)
	switch {
	case merr != nil:
	case c.into == "":
		_, merr = io.WriteString(os.Stdout, table)
	default:
		merr = replaceFile(c.into, table)
	}
	return errors.Join(err, merr)
}

// replaceFile writes a file so that it is always complete.
func replaceFile(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
