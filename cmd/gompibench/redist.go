// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"gompi/bench/redist"
	"gompi/bench/report"
	"gompi/mpi"
)

// redistCommand is a parsed `gompibench redist`.
type redistCommand struct {
	opt                 redist.Options
	mib                 float64
	methods, strategies string
	json, progress      bool

	pairs  []int
	into   string
	tables bool
	doc    string
	files  []string
	out    io.Writer // for the tables of --pairs
}

func (c *redistCommand) flags() *pflag.FlagSet {
	f := newFlagSet("redist")
	f.IntVar(&c.opt.From, "from", 2, "ranks before the change")
	f.IntVar(&c.opt.To, "to", 4, "ranks after it")
	f.Float64Var(&c.mib, "mib", 256, "the data in all, in MiB")
	f.StringVar(&c.methods, "methods", "all", "`LIST` of col, p2p, rma-lock, rma-lockall, pull, inplace")
	f.StringVar(&c.strategies, "strategies", "all", "`LIST` of blocking, nb, t, wd: each method with each strategy takes turns")
	f.IntVar(&c.opt.Rounds, "rounds", redist.DefaultRounds, "how often each of them")
	f.DurationVar(&c.opt.Iteration, "iteration", redist.DefaultIteration, "time of an iteration on --from ranks")
	f.BoolVar(&c.json, "json", false, "one JSON object a line instead of a table")
	f.StringVar(&c.opt.Transport, "transport", "", "what results call the transport (default: its name)")
	f.BoolVar(&c.progress, "progress", isTerminal(os.Stderr), "say on stderr what is being measured (default: if it is a terminal)")
	f.IntSliceVar(&c.pairs, "pairs", nil, "instead of --from and --to: all ordered pairs of these numbers, `N1,N2,...`, with the time left")
	f.StringVar(&c.into, "into", "redist.json", "`FILE` to which --pairs appends results; what it has is not measured again")
	f.BoolVar(&c.tables, "tables", false, "measure nothing: write the tables of docs/results/redistribution.md, from results in FILE...")
	f.StringVar(&c.doc, "doc", "", "with --tables: into this `FILE`, in place of what stands there between the lines that say so")
	return f
}

// parseRedist reads the arguments after "redist".
func parseRedist(args []string) (*redistCommand, error) {
	c := &redistCommand{out: os.Stdout}
	f := c.flags()
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	c.files = f.Args()
	for _, n := range c.pairs {
		if n < 1 {
			return nil, fmt.Errorf("--pairs %v must be at least 1 each", c.pairs)
		}
	}
	switch {
	case c.tables != (f.NArg() > 0):
		return nil, fmt.Errorf("--tables has files, and nothing else has: %q", f.Args())
	case c.doc != "" && !c.tables:
		return nil, errors.New("--doc goes with --tables")
	case f.Changed("pairs") && (f.Changed("from") || f.Changed("to")) || f.Changed("into") && !f.Changed("pairs") || c.tables && f.Changed("pairs"):
		return nil, errors.New("--pairs goes with --into, not with --from, --to or --tables")
	case c.opt.From < 1 || c.opt.To < 1 || c.opt.From == c.opt.To:
		return nil, fmt.Errorf("--from %d and --to %d must be at least 1, and not the same", c.opt.From, c.opt.To)
	case !(c.mib > 0 && c.mib <= 1<<20):
		return nil, fmt.Errorf("--mib %v must be above 0, at most 1048576", c.mib)
	case c.opt.Rounds < 1 || c.opt.Iteration <= 0:
		return nil, fmt.Errorf("--rounds %d must be at least 1, --iteration %v above 0", c.opt.Rounds, c.opt.Iteration)
	}
	c.opt.Bytes = int64(c.mib * (1 << 20))
	var err error
	c.opt.Variants, err = redist.Variants(c.methods, c.strategies)
	return c, err
}

func runRedist(args []string) {
	c, err := parseRedist(args)
	exitOn(err, redistUsage)
	switch {
	case c.tables:
		exit(c.writeTables())
	case len(c.pairs) > 0:
		exit(c.matrix())
	case !launched():
		exit(launch(c.opt.From, c.progress))
	}
	mpi.Main(c.run)
}

func redistUsage() string {
	return "usage: gompibench redist [flags]                (starts itself under gompirun)\n" +
		"       gompirun -np FROM gompibench redist --from FROM [flags]\n" +
		"       gompibench redist --pairs 1,2,4,8 --into FILE [flags]   (a job for each pair; goes on where it was interrupted)\n" +
		"       gompibench redist --tables FILE...\n\n" +
		"Measures how data is redistributed when a job changes its size by package mam: FROM ranks\n" +
		"iterate (SAM's emulation of CG), change to TO ranks, and back, by each method and strategy in\n" +
		"turn. The data is checked after each change. A method or strategy that is repaired to another\n" +
		"one is told under the name of that, once.\n\n" +
		"The table has milliseconds, medians of the rounds. In brackets what JSON calls it:\n" +
		"  msec      from the first source's start until the last target has all data, with allocation\n" +
		"            and first touch of all memory that receives, whenever that was, and without the\n" +
		"            start of processes [msec]\n" +
		"  warm      without that memory; touch is it alone [warm_msec, touch_msec]\n" +
		"  omega     how much longer the sources' iterations are meanwhile [omega]\n" +
		"  iters     how many they make meanwhile [iterations]\n" +
		"  total     the study's totals: msec, and of blocking ones as many iterations on TO ranks as the\n" +
		"            background one that makes the fewest has made meanwhile\n" +
		"  equal     the same where all get as far as the background one that makes the most\n" +
		"  moved     bytes that came from other processes, and how many had to [moved_bytes, minimum_bytes]\n" +
		"JSON has the size [mib], the totals [total_msec, equal_total_msec] and the time of an iteration\n" +
		"before and after, too [from_iter_msec, to_iter_msec].\n\nflags:\n" +
		new(redistCommand).flags().FlagUsages()
}

// run runs in each rank.
func (c *redistCommand) run(ctx context.Context, world *mpi.Comm) error {
	var all []report.Result
	emit := func(r report.Result) error {
		all = append(all, r)
		if c.json {
			return report.Write(os.Stdout, r)
		}
		return nil
	}
	c.opt.Note = func(text string) { fmt.Fprintln(os.Stderr, "gompibench: redist:", text) }
	if c.progress {
		c.opt.Progress = func(done, all int, next string) {
			fmt.Fprintf(os.Stderr, progressLine+"%s\n", c.opt.From, c.opt.To, done, all, next)
		}
	}
	if err := redist.Run(ctx, world, c.opt, emit); err != nil || c.json || len(all) == 0 {
		return err
	}
	return report.RedistTable(os.Stdout, all)
}

// writeTables implements --tables.
func (c *redistCommand) writeTables() error {
	rs, err := readResults(c.files)
	if err != nil {
		return err
	}
	if c.doc == "" {
		return redist.Tables(os.Stdout, rs)
	}
	var b strings.Builder
	if err := redist.Tables(&b, rs); err != nil {
		return err
	}
	return report.WriteTables(c.doc, "gompibench redist --tables", b.String())
}
