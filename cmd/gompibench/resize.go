// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"gompi/bench"
	"gompi/bench/report"
	"gompi/mpi"
)

// resizeCommand is a parsed `gompibench resize`.
type resizeCommand struct {
	opt   bench.ResizeOptions
	mode  string
	json  bool
	spare int
}

func (c *resizeCommand) flags() *pflag.FlagSet {
	f := newFlagSet("resize")
	f.IntVar(&c.opt.Start, "start", 2, "ranks that are added to, or that remain")
	f.IntSliceVar(&c.opt.Deltas, "delta", []int{2}, "how many ranks come or go: `D1,D2,...`, each from --start on")
	f.StringVar(&c.mode, "mode", "add", "add, or sub: the job begins with --start and the first --delta")
	f.IntVar(&c.opt.Rounds, "rounds", bench.DefaultResizeRounds, "changes by each delta, with the way back between them")
	f.BoolVar(&c.opt.Busy, "busy", false, "iterations compute for 10 ms instead of sleeping so long")
	f.BoolVar(&c.opt.Nonblocking, "nonblocking", false, "go on until newcomers are there, instead of waiting for them")
	f.IntVar(&c.spare, "spare", 0, "processes that are kept ready, when started without gompirun (gompirun --spare)")
	outputFlags(f, &c.json, &c.opt.Transport)
	return f
}

// parseResize reads the arguments after "resize".
func parseResize(args []string) (*resizeCommand, error) {
	c := &resizeCommand{}
	f := c.flags()
	if err := parseNoArgs(f, args); err != nil {
		return nil, err
	}
	switch {
	case c.mode != "add" && c.mode != "sub":
		return nil, fmt.Errorf("--mode %s is neither add nor sub", c.mode)
	case c.spare < 0:
		return nil, fmt.Errorf("--spare %d is below 0", c.spare)
	case c.opt.Start < 1 || c.opt.Rounds < 1 || len(c.opt.Deltas) == 0:
		return nil, fmt.Errorf("--start %d, --rounds %d and --delta %v must be at least 1", c.opt.Start, c.opt.Rounds, c.opt.Deltas)
	}
	for _, d := range c.opt.Deltas {
		if d < 1 {
			return nil, fmt.Errorf("--delta %d must be at least 1", d)
		}
	}
	c.opt.Remove = c.mode == "sub"
	return c, nil
}

func runResize(began time.Time, args []string) {
	c, err := parseResize(args)
	exitOn(err, resizeUsage)
	if !launched() {
		exit(launch(c.opt.Size(), false, "--spare", strconv.Itoa(c.spare)))
	}
	if os.Getenv("GOMPI_SPARE") == "" { // otherwise the start was not waited for
		c.opt.Began = began
	}
	mpi.Main(c.run)
}

func resizeUsage() string {
	return "usage: gompibench resize [flags]                (starts itself under gompirun)\n" +
		"       gompirun -np START gompibench resize --start START [flags]   (--mode sub: -np START+DELTA)\n\n" +
		"Measures changes of the number of ranks: a job iterates (10 ms of work and a barrier), every\n" +
		"tenth iteration rank 0 asks for a change, and all adopt it in the same iteration.\n\n" +
		"The table has milliseconds, medians of the rounds; total, wait, initiation, ready and gone begin\n" +
		"when the head notices the request. In brackets what JSON calls it:\n" +
		"  total       until the last rank that stays or comes is back from Commit and the last one\n" +
		"              that goes has exited [total_msec]\n" +
		"  wait        the part of it in which only the agreed iteration was awaited [wait_msec]\n" +
		"  initiation  until the first fork, or the news of a removal, is ordered [initiation_msec]\n" +
		"  overhead    in the Check that returns the change and in Commit: the longest of the ranks\n" +
		"              that were there before and stay [app_overhead_msec]\n" +
		"  skew        the part of it until the last of them had come there [skew_msec]\n" +
		"  median      of that overhead over the ranks [app_overhead_median_msec]\n" +
		"  check us    the longest other call of Check, in microseconds [check_max_usec]\n" +
		"  init        of the newcomers, from the start of the process to the end of Init, the longest\n" +
		"              [init_max_msec]\n" +
		"  ready       until all newcomers have joined [ready_msec]\n" +
		"  barrier     the first of the new communicator, by rank 0's clock [first_barrier_msec]\n" +
		"  later       the next ones [later_barrier_msec]\n" +
		"  gone        until the pids of those who go are free [gone_msec]\n\nflags:\n" +
		new(resizeCommand).flags().FlagUsages()
}

// run runs in each rank.
func (c *resizeCommand) run(ctx context.Context, world *mpi.Comm) error {
	return bench.Resize(ctx, world, c.opt, printer(c.json, report.ResizeHeader, report.ResizeRow))
}
