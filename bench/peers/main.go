// SPDX-License-Identifier: Apache-2.0

// Command peers measures gompi beside Open MPI and MPICH: the same loops, on
// the same machine, in turn, and prints the medians with the ratio to the
// best peer and the goal. `make bench-peers` runs it. --peer takes further
// implementations than the installed two.
//
// Each round runs every job once with every implementation, one after the
// other, so that what disturbs the machine disturbs all of them; a cell is
// the median of the rounds' medians. Of two ranks each block of iterations stands
// between two probes; if these part into two states of the machine, processors that
// share a cache just now and such that do not, each has a table of its own. The C side is peer.c, compiled for each;
// everything is built in a temporary directory.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"gompi/bench/report"
)

type options struct {
	rounds  int
	msec    int
	timeout time.Duration
	// untilBoth is how long rounds go on until both states of the machine have come.
	untilBoth time.Duration
	impls     []string
	further   []string
	jobs      string
	markdown  string
	doc       string
	raw       string
	install   bool
}

func main() {
	var o options
	f := pflag.NewFlagSet("peers", pflag.ContinueOnError)
	f.SortFlags = false
	f.IntVar(&o.rounds, "rounds", 7, "how often everything is measured")
	f.IntVar(&o.msec, "msec", 300, "time of one point of one round, in milliseconds")
	f.DurationVar(&o.untilBoth, "until-both", 0, "go on for so long until two ranks have been measured well with processors that share a cache and with such that do not")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "after this a process counts as hanging, beyond the time its points should take")
	f.StringSliceVar(&o.impls, "only", nil, "implementations to run, by name (default: gompi, openmpi, mpich and each --peer)")
	f.StringArrayVar(&o.further, "peer", nil, "a further implementation, NAME=COMPILE,RUN: `COMPILE IN.c OUT` compiles and `RUN -np N OUT ARG...` runs; "+
		"OUT is a path in /tmp, which may be that of another root file system (more than once)")
	f.StringVar(&o.jobs, "jobs", "", "run only these: comma list of groups, benchmarks or parts of names (--jobs list prints them); redist runs only if it is named")
	f.StringVar(&o.markdown, "markdown", "", "also write the table as Markdown to this file")
	f.StringVar(&o.doc, "doc", "", "also write that into this document, in place of what stands there between the lines that name make bench-near")
	f.StringVar(&o.raw, "json", "", "also write every result as a JSON line to this file")
	f.BoolVar(&o.install, "install", true, "install missing Debian packages when root")
	if err := f.Parse(os.Args[1:]); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, f.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	if o.rounds < 1 || o.msec < 1 {
		return fmt.Errorf("--rounds %d, --msec %d: both must be at least 1", o.rounds, o.msec)
	}
	if o.jobs == "list" {
		for _, j := range jobs() {
			fmt.Printf("%-12s %s\n", j.group, j.name())
		}
		return nil
	}
	picked, err := pick(jobs(), o.jobs)
	if err != nil {
		return err
	}
	peers, names, err := withFurther(o.further)
	if err != nil {
		return err
	}
	if o.impls == nil {
		o.impls = append([]string{ours, "openmpi", "mpich"}, names...)
	}
	dir, err := os.MkdirTemp("", "gompi-peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var impls []impl
	for _, name := range o.impls {
		m, err := prepare(ctx, peers, name, dir, o.install, slices.ContainsFunc(picked, job.redist))
		defer m.remove()
		if err != nil {
			return err
		}
		impls = append(impls, m)
	}

	warnIfBusy(os.Stderr)
	b := newBoard()
	s := session{opt: o, impls: impls, board: b}
	if _, err := unix.IoctlGetTermios(int(os.Stderr.Fd()), unix.TCGETS); err == nil {
		s.log = os.Stderr
	}
	if o.raw != "" {
		f, err := os.Create(o.raw)
		if err != nil {
			return err
		}
		defer f.Close()
		s.raw = f
	}
	err = s.measure(ctx, picked)
	// What was measured before an interrupt is worth showing.
	t := b.table(picked, impls)
	if werr := t.text(os.Stdout); err == nil {
		err = werr
	}
	var md strings.Builder
	if err == nil {
		err = t.markdown(&md, machine(), o)
	}
	if o.markdown != "" && err == nil {
		err = os.WriteFile(o.markdown, []byte(md.String()), 0o666)
	}
	if o.doc != "" && err == nil {
		err = report.WriteTables(o.doc, "make bench-near", md.String())
	}
	return err
}

// warnIfBusy says so when others use the processors: the ratios would be those
// of spinning against sleeping, not of the implementations.
func warnIfBusy(w io.Writer) {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return
	}
	var load float64
	if _, err := fmt.Sscan(string(b), &load); err == nil && load > 0.5*float64(runtime.NumCPU()) {
		fmt.Fprintf(w, "peers: warning: the load average is %.1f on %d cores; numbers will be worth little\n", load, runtime.NumCPU())
	}
}
