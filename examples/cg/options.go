// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
)

type options struct {
	matrix  string
	rhs     string
	plot    string
	tol     float64
	maxIter int
	pause   time.Duration
	help    bool
}

// mostIter bounds what all ranks keep: a residual of each iteration.
const mostIter = 1_000_000

const usage = `Usage: gompirun -np N cg [flags] MATRIX

Solves A x = b by conjugate gradients with Jacobi preconditioner. MATRIX is a
symmetric positive definite matrix in Matrix Market format, plain or compressed
by gzip or zstd. b is A times the vector of ones unless --rhs names a file.

`

// parse reads the command line. A request for help is written to out.
func parse(args []string, out io.Writer) (options, error) {
	var o options
	f := pflag.NewFlagSet("cg", pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.rhs, "rhs", "", "right-hand side: a Matrix Market `FILE`, array, n x 1")
	f.Float64Var(&o.tol, "tol", 1e-10, "stop when |b - A x| is below `T` |b|")
	f.IntVar(&o.maxIter, "max-iter", 10_000, "give up after `N` iterations")
	f.DurationVar(&o.pause, "pause", 0, "rest after each iteration, to be watched and resized")
	f.StringVar(&o.plot, "plot", "", "draw the residuals into `FILE` as SVG")
	f.BoolVarP(&o.help, "help", "h", false, "print this")
	if err := f.Parse(args); err != nil {
		return o, fmt.Errorf("%w; cg --help lists the flags", err)
	}
	if o.help {
		_, err := fmt.Fprint(out, usage, f.FlagUsages())
		return o, err
	}
	switch {
	case f.NArg() != 1:
		return o, fmt.Errorf("%d arguments, one is needed: the file of the matrix; see cg --help", f.NArg())
	case !(o.tol > 0) || !finite(o.tol):
		return o, fmt.Errorf("--tol %g is not above 0", o.tol)
	case o.maxIter < 1 || o.maxIter > mostIter:
		return o, fmt.Errorf("--max-iter %d is not within 1 to %d", o.maxIter, mostIter)
	case o.pause < 0:
		return o, fmt.Errorf("--pause %v is below 0", o.pause)
	}
	o.matrix = f.Arg(0)
	return o, nil
}
