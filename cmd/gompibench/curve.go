// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/pflag"

	"gompi/bench"
	"gompi/bench/report"
	"gompi/mpi"
)

// curveCommand is a parsed `gompibench curve`.
type curveCommand struct {
	opt      bench.CurveOptions
	json     bool
	progress bool
	bytes    string // as written
}

func (c *curveCommand) flags() *pflag.FlagSet {
	f := newFlagSet("curve")
	f.StringVar(&c.bytes, "bytes", "", "`SIZES`, such as 8,4K,4M (default: from 1 to 4M, four to each power of two)")
	f.IntVar(&c.opt.Rounds, "rounds", bench.DefaultCurveRounds, "rounds in which the sizes take turns, of 0.4 ms each")
	f.DurationVar(&c.opt.Both, "until-both", 0, "go on, for as long as this at most, until all sizes have been seen near and far")
	f.BoolVar(&c.opt.Batches, "batches", false, "with --json: each block, with the probes of the machine before and after it")
	f.BoolVar(&c.json, "json", false, "one JSON object a line instead of a table")
	f.StringVar(&c.opt.Transport, "transport", "", "what results call the transport (default: its name)")
	progressFlag(f, &c.progress)
	return f
}

// parseCurve reads the arguments after "curve".
func parseCurve(args []string) (*curveCommand, error) {
	c := &curveCommand{}
	f := c.flags()
	if err := parseNoArgs(f, args); err != nil {
		return nil, err
	}
	if err := checkTurns(c.opt.Rounds, c.opt.Both); err != nil {
		return nil, err
	}
	var err error
	if c.bytes != "" {
		c.opt.Bytes, err = bench.ParseBytes(c.bytes)
	}
	return c, err
}

func runCurve(args []string) {
	c, err := parseCurve(args)
	exitOn(err, curveUsage)
	if !launched() {
		exit(launch(2, c.progress))
	}
	mpi.Main(c.run)
}

func curveUsage() string {
	return "usage: gompirun -np 2 gompibench curve [flags]\n" +
		"       gompibench curve [flags]   (starts itself under gompirun)\n\n" +
		"Measures how the time of a message (ping-pong, one way) grows with its size, and says where\n" +
		"it falls by 10 % or more, so that a smaller message takes longer than a larger one: in each\n" +
		"state of the machine if it has two (the processors of the ranks share a cache, or not).\n" +
		"What was measured before ^C is printed.\n\nflags:\n" +
		new(curveCommand).flags().FlagUsages()
}

// run runs in each rank.
func (c *curveCommand) run(ctx context.Context, world *mpi.Comm) error {
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	bar := progressBar{on: c.progress, w: os.Stderr}
	c.opt.Progress = func(done, total int) { bar.show("rounds", done, total) }
	results, err := bench.Curve(ctx, world, c.opt)
	if world.Rank() != 0 {
		return err
	}
	bar.clear()
	emit := printer(c.json, report.Header, report.Row)
	for _, r := range results {
		err = errors.Join(err, emit(r))
	}
	return err
}
