// SPDX-License-Identifier: Apache-2.0

// Command gompibench measures gompi: `gompibench NAME [flags]`, under gompirun or alone
// (it then starts itself under gompirun). `gompibench report` lets gompiplot make a page
// with plots of results; `gompibench simulate` predicts larger systems, and `gompibench
// policy` simulates how jobs share slots.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"gompi/bench"
	"gompi/bench/report"
	"gompi/internal/base/version"
	"gompi/mpi"
)

func main() {
	began := time.Now()
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "--version", "-V":
			_, err := io.WriteString(os.Stdout, version.Line("gompibench"))
			exit(err)
		case "report":
			exit(writeReport(os.Args[2:]))
		case "simulate":
			exit(simulate(os.Args[2:], os.Stdout))
		case "policy":
			exit(policy(os.Args[2:], os.Stdin, os.Stdout))
		case "first":
			runFirst(os.Args[2:])
			return
		case "curve":
			runCurve(os.Args[2:])
			return
		case "resize":
			runResize(began, os.Args[2:])
			return
		case "redist":
			runRedist(os.Args[2:])
			return
		case "sam":
			runSam(os.Args[2:])
			return
		case "spawn":
			runSpawn(os.Args[2:])
			return
		case "tune":
			if len(os.Args) > 2 && os.Args[2] == "redist" {
				runModel(os.Args[3:])
			}
			if len(os.Args) > 2 && os.Args[2] == "shm" {
				runWays(os.Args[3:])
				return
			}
			runTune(os.Args[2:])
			return
		}
	}
	c, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, pflag.ErrHelp):
		exit(usage(os.Stdout))
	case err != nil:
		exit(usageError{err})
	}
	if !launched() {
		exit(launch(c.np, c.progress))
	}
	mpi.Main(c.run)
}

// usageError is a mistake on the command line: exit status 2.
type usageError struct{ error }

func exit(err error) {
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, "gompibench:", err)
	if errors.As(err, new(usageError)) {
		os.Exit(2)
	}
	os.Exit(1)
}

// command is a parsed command line.
type command struct {
	bench    bench.Benchmark
	opt      bench.Options
	json     bool
	progress bool
	np       int

	// As written.
	bytes string
	msec  int
}

func (c *command) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("gompibench", pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() {}
	f.StringVar(&c.bytes, "bytes", "", "`SIZES` of messages, such as 8,4K,4M (default: a list that suits the benchmark)")
	f.IntVar(&c.opt.Iters, "iters", 0, "iterations of each point (default: as many as fit into --msec)")
	f.IntVar(&c.msec, "msec", int(bench.DefaultTime/time.Millisecond), "time of each point, in milliseconds")
	f.BoolVar(&c.json, "json", false, "one JSON object a line instead of a table")
	f.BoolVar(&c.opt.Batches, "batches", false, "with --json and two ranks: each block of iterations, with the probes of the machine before and after it")
	f.IntVar(&c.opt.Goroutines, "goroutines", 1, "goroutines of each rank (mbw)")
	f.BoolVar(&c.opt.Overlap, "overlap", false, "also measure how much is hidden behind computing (nonblocking collectives)")
	f.BoolVar(&c.opt.Idle, "idle", false, "with --overlap: sleep instead of computing, as if there were cores to spare")
	f.StringVar(&c.opt.Target, "target", "", "also measure while the target is `DOING`: computing or streaming, and how much that slows it down (put, get, acc, getacc, fao, cas)")
	f.BoolVar(&c.opt.Given, "given", false, "windows of memory that is there instead of allocated ones (the same)")
	f.IntVar(&c.np, "np", 2, "ranks, when started without gompirun")
	f.StringVar(&c.opt.Transport, "transport", "", "what results call the transport (default: its name); gompirun --transport chooses it")
	f.BoolVar(&c.progress, "progress", isTerminal(os.Stderr), "say on stderr what is being measured (default: if it is a terminal)")
	return f
}

// parse reads a command line without the program's name.
func parse(args []string) (*command, error) {
	c := &command{}
	f := c.flags()
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	switch f.NArg() {
	case 0:
		return nil, errors.New("which benchmark? `gompibench --help` lists them")
	case 1:
	default:
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(1))
	}
	var ok bool
	if c.bench, ok = bench.Find(f.Arg(0)); !ok {
		return nil, fmt.Errorf("no benchmark %q; `gompibench --help` lists them", f.Arg(0))
	}
	if c.msec < 1 || c.np < 2 {
		return nil, fmt.Errorf("--msec %d must be at least 1, --np %d at least 2", c.msec, c.np)
	}
	c.opt.Time = time.Duration(c.msec) * time.Millisecond
	if c.bytes != "" {
		var err error
		if c.opt.Bytes, err = bench.ParseBytes(c.bytes); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// run runs in each rank.
func (c *command) run(ctx context.Context, world *mpi.Comm) error {
	emit := func(r report.Result) error { return report.Row(os.Stdout, r) }
	if c.json {
		emit = func(r report.Result) error { return report.Write(os.Stdout, r) }
	} else if world.Rank() == 0 {
		if err := report.Header(os.Stdout); err != nil {
			return err
		}
	}
	if c.progress {
		c.opt.Progress = func(bytes, done, total int) {
			fmt.Fprintf(os.Stderr, "gompibench: %s, %d bytes: %d of %d\n", c.bench.Name, bytes, done+1, total)
		}
	}
	return c.bench.Run(ctx, world, c.opt, emit)
}

func usage(w io.Writer) error {
	var b strings.Builder
	b.WriteString("usage: gompirun -np N gompibench NAME [flags]\n       gompibench NAME [flags]              (starts itself under gompirun)\n" +
		"       gompibench report [-o FILE] [--title T] FILE...   (an HTML page with plots, from JSON lines; by gompiplot)\n" +
		"       gompibench first [flags]  (the first calls of a job and of new communicators)\n" +
		"       gompibench curve [flags]  (how the time of a message grows with its size, where it falls)\n" +
		"       gompibench resize [flags] (what it takes to change the number of ranks)\n" +
		"       gompibench redist [flags] (what it takes to redistribute data when that number changes)\n" +
		"       gompibench sam [flags] CONFIG  (a synthetic application that changes its number of ranks)\n" +
		"       gompibench spawn [flags]  (what it takes to start processes from a running job)\n" +
		"       gompibench tune [OPERATION...] [--into FILE]  (measures all algorithms; writes a table for gompirun --coll-table)\n" +
		"       gompibench tune shm [--into FILE]  (which way messages go fastest inside a host; writes a table for gompirun --shm-table)\n" +
		"       gompibench tune redist [RESULTS...]  (how long data takes to be redistributed; writes a model for gompirun --mam-model)\n" +
		"       gompibench simulate OPERATION [flags]  (predicts the time of collectives on any number of ranks)\n" +
		"       gompibench policy [flags] [FILE]  (a mix of jobs under policies of sharing out the slots)\n" +
		"       gompibench --version\n\nbenchmarks:\n")
	for _, x := range bench.All() {
		fmt.Fprintf(&b, "  %-20s %s\n", x.Name, x.Help)
	}
	b.WriteString("\nflags:\n" + new(command).flags().FlagUsages())
	b.WriteString("\ntimes are microseconds of one operation (see package gompi/bench): usec is the median.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
