// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"gompi/bench"
	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/collectives/sim"
)

const simulateUsage = `usage: gompibench simulate OPERATION [flags]

Predicts how long a collective takes: the schedules that gompi executes are run
on virtual ranks under the LogGP model. No processes are started.

  gompibench simulate allreduce --ranks 100000 --bytes 8,4K,1M
  gompibench simulate bcast --ranks 16,256,4096 --bytes 64K --plot=bcast.svg
  gompibench simulate barrier --ranks 1000000 --alg dissemination --loggp 2,0.5,0.5,0.1
  gompibench simulate allgather --ranks 4 --bytes 8 --alg bruck --trace

`

const simulateModel = `
--loggp L,o,g,G: latency, overhead of the processor at either end and gap between
messages of one rank, in microseconds; time per byte in nanoseconds. A message
of k bytes takes o + (k-1)G + L + o. Sends wait for no receive; links do not
contend. A time is that of the last rank. A size is the whole of bcast, reduce,
allreduce, scan and exscan, and one block of the others; neighbours are those of
a periodic grid of two dimensions. Algorithms that send from each rank to each
other one are extrapolated where there are too many ranks; the table marks them.
`

// simulation is a parsed command line of `gompibench simulate`.
type simulation struct {
	bench.Simulation
	json, trace, progress bool
	plot                  string // file, "" for none

	// As written.
	ranks, bytes, algorithms, net, node string
	gamma                               float64
}

func (c *simulation) flags() *pflag.FlagSet {
	f := newFlagSet("simulate")
	m := sim.DefaultMachine()
	f.StringVar(&c.ranks, "ranks", "100000", "`NUMBERS` of ranks, such as 16,1024,100000")
	f.StringVar(&c.bytes, "bytes", "8,512,32K,1M", "`SIZES`")
	f.StringVar(&c.algorithms, "alg", "", "`NAMES` of algorithms to try, such as ring,doubling (default: all)")
	f.IntVar(&c.Root, "root", 0, "`RANK` that is the root of bcast, reduce, gather and scatter")
	f.StringVar(&c.net, "loggp", m.Net.String(), "the network, `L,o,g,G`")
	f.StringVar(&c.node, "node-loggp", m.Node.String(), "the same inside a node, `L,o,g,G`")
	f.IntVar(&c.PerNode, "per-node", 1, "`NUMBER` of consecutive ranks that share a node")
	f.Float64Var(&c.gamma, "gamma", m.Gamma*1000, "time of reducing or copying a byte, in `NANOSECONDS`")
	f.StringVar(&c.plot, "plot", "", "draw the times as SVG to `FILE`; a single point as a curve over fewer ranks")
	f.Lookup("plot").NoOptDefVal = defaultPlot
	f.BoolVar(&c.json, "json", false, "one JSON object a line instead of a table")
	f.BoolVar(&c.trace, "trace", false, "print every message instead; for few ranks")
	progressFlag(f, &c.progress)
	return f
}

// defaultPlot stands for a file name that is made from the operation.
const defaultPlot = "simulate-OPERATION.svg"

func parseSimulation(args []string) (*simulation, error) {
	c := &simulation{}
	f := c.flags()
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() == 2 && c.plot == defaultPlot {
		return nil, fmt.Errorf("simulate: %q is a second operation; a plot's file is given as --plot=FILE", f.Arg(1))
	}
	if f.NArg() != 1 {
		return nil, fmt.Errorf("simulate: want one operation, not %d; there are: %s", f.NArg(), operations())
	}
	var err error
	if c.Op, err = collectives.ParseOp(f.Arg(0)); err != nil {
		return nil, fmt.Errorf("simulate: %w; there are: %s", err, operations())
	}
	if c.Ranks, err = parseRanks(c.ranks); err != nil {
		return nil, err
	}
	if c.Bytes, err = bench.ParseBytes(c.bytes); err != nil {
		return nil, err
	}
	if c.algorithms != "" {
		c.Algorithms = strings.Split(c.algorithms, ",")
	}
	if c.Machine.Net, err = sim.ParseLogGP(c.net); err != nil {
		return nil, fmt.Errorf("--loggp %w", err)
	}
	if c.Machine.Node, err = sim.ParseLogGP(c.node); err != nil {
		return nil, fmt.Errorf("--node-loggp %w", err)
	}
	c.Machine.Gamma = c.gamma / 1000
	switch {
	case c.trace && (c.json || c.plot != ""):
		return nil, errors.New("simulate: --trace prints messages only, without --json and --plot")
	case c.plot != "" && len(c.Ranks) > 1 && len(c.Bytes) > 1 && c.Op != collectives.OpBarrier:
		return nil, errors.New("simulate: a plot is over ranks or over bytes: give one of them a single value")
	case c.plot == defaultPlot:
		c.plot = "simulate-" + c.Op.String() + ".svg"
	}
	return c, nil
}

// operations lists the operations that have algorithms.
func operations() string {
	var names []string
	for _, g := range selection.All() {
		if n := len(names); n == 0 || names[n-1] != g.Op.String() {
			names = append(names, g.Op.String())
		}
	}
	return strings.Join(names, " ")
}

func parseRanks(list string) ([]int, error) {
	var ns []int
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > sim.MaxRanks {
			return nil, fmt.Errorf("--ranks %q: want numbers from 1 to %d", list, sim.MaxRanks)
		}
		ns = append(ns, n)
	}
	return ns, nil
}

// simulate implements `gompibench simulate OPERATION`.
func simulate(args []string, stdout io.Writer) error {
	c, err := parseSimulation(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		_, err := io.WriteString(stdout, simulateUsage+"operations: "+operations()+"\n\nflags:\n"+new(simulation).flags().FlagUsages()+simulateModel)
		return err
	case err != nil:
		return usageError{err}
	case c.trace:
		return c.Trace(func(call *sim.Call, r sim.Result, ms []sim.Message) error {
			return bench.WriteTrace(stdout, call, r, ms)
		})
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return c.run(ctx, stdout)
}

func (c *simulation) run(ctx context.Context, stdout io.Writer) error {
	asked := c.Ranks
	if c.plot != "" && len(asked) == 1 && (len(c.Bytes) == 1 || c.Op == collectives.OpBarrier) {
		c.Ranks = upTo(asked[0])
	}
	var all, shown []bench.Predicted
	bar := progressBar{on: c.progress, w: os.Stderr}
	defer bar.clear()
	if !c.json {
		if err := bench.PredictedHeader(stdout); err != nil {
			return err
		}
	}
	err := c.Run(ctx, bar.show, func(rows []bench.Predicted) error {
		all = append(all, rows...)
		if rows[0].Ranks < asked[0] && len(c.Ranks) > len(asked) {
			return nil // print the curve only
		}
		bar.clear()
		if c.json {
			return bench.PredictedJSON(stdout, rows)
		}
		shown = append(shown, rows...)
		return bench.PredictedRows(stdout, rows)
	})
	if err != nil {
		return err
	}
	bar.clear()
	if !c.json {
		if err := bench.PredictedNotes(stdout, shown); err != nil {
			return err
		}
	}
	if c.plot == "" {
		return nil
	}
	f, err := bench.FigureOf(all)
	if err != nil {
		return err
	}
	return writePlot(f, c.plot, c.json, stdout)
}

// upTo returns the numbers of ranks of a curve that ends with n: n, and a quarter of each
// down to 2 or 3.
func upTo(n int) []int {
	var ns []int
	for k := n; k >= 2; k /= 4 {
		ns = append([]int{k}, ns...)
	}
	if ns == nil {
		ns = []int{n}
	}
	return ns
}

// progressBar is a line on a terminal that is rewritten.
type progressBar struct {
	on    bool
	w     io.Writer
	shown bool
}

// barWidth is the width of the bar alone, in characters.
const barWidth = 24

func (b *progressBar) show(what string, done, total int) {
	if !b.on {
		return
	}
	full := done * barWidth / max(1, total)
	fmt.Fprintf(b.w, "\r\x1b[K[%s%s] %d of %d: %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), done, total, what)
	b.shown = true
}

// clear removes the line.
func (b *progressBar) clear() {
	if b.shown {
		fmt.Fprint(b.w, "\r\x1b[K")
		b.shown = false
	}
}
