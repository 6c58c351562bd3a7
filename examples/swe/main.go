// SPDX-License-Identifier: Apache-2.0

// Command swe lets a column of water fall into a basin: the shallow water equations in two
// dimensions, by finite volumes, on as many ranks as there are just then:
//
//	gompirun -np 1 swe --grow --chart strip.svg
//	gompirun -np 2 swe --refine 2 --frames out --pause 5ms
//	gompictl resize JOB +2       # in another terminal; JOB is the first thing it prints
//
// The basin is cut into patches (grid.go), which are refined where the water is rough
// (refine.go). A step needs the cells beside each patch (exchange.go), and is the same to
// the bit whoever computes which patch (water.go, flux.go). When the job changes its size
// package mam moves the cells (job.go).
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"gompi/examples/options"
	"gompi/mpi"
)

// settings are what the command line says.
type settings struct {
	wide, high, base int
	finest, regrid   int
	phases, steps    int
	grow             bool
	most             int
	pause            time.Duration
	frames, chart    string
	every            int
}

func main() {
	var o settings
	pflag.IntVar(&o.wide, "wide", 12, "patches from left to right")
	pflag.IntVar(&o.high, "high", 8, "patches from below to above")
	pflag.IntVar(&o.base, "base", 16, "cells along an edge of a patch")
	pflag.IntVar(&o.finest, "refine", 0, "patches where the water is rough have this many levels more, each with twice as many cells either way")
	pflag.IntVar(&o.regrid, "regrid", 8, "steps after which it is looked again where that is")
	pflag.IntVar(&o.phases, "phases", 10, "parts of the run, of which each says how long it took")
	pflag.IntVar(&o.steps, "steps", 50, "steps of a phase")
	pflag.BoolVar(&o.grow, "grow", false, "begin each phase with as many ranks more as there were in the beginning")
	pflag.IntVar(&o.most, "most", 4, "up to so many times as many")
	pflag.DurationVar(&o.pause, "pause", 0, "rest after each step, to be watched and resized")
	pflag.StringVar(&o.frames, "frames", "", "`directory` for pictures of the water, as PNG")
	pflag.IntVar(&o.every, "every", 10, "steps from one picture to the next")
	pflag.StringVar(&o.chart, "chart", "", "`file` for ranks and time of the phases, as SVG")
	options.Parse()
	mpi.Main(func(ctx context.Context, world *mpi.Comm) error {
		if err := o.check(); err != nil {
			return err
		}
		return (&job{settings: o, out: os.Stdout}).run(ctx, world)
	})
}

// Bounds that keep all sizes far from overflow.
const (
	mostPatches = 1 << 12 // either way
	mostCells   = 1 << 28
)

func (o *settings) check() error {
	switch {
	case o.wide < 1 || o.high < 1 || o.wide > mostPatches || o.high > mostPatches:
		return fmt.Errorf("--wide %d, --high %d: 1 to %d patches", o.wide, o.high, mostPatches)
	case o.base < 4 || o.base > 1024 || o.finest < 0 || o.finest > 6:
		return fmt.Errorf("--base %d, --refine %d: 4 to 1024 cells, 0 to 6 levels more", o.base, o.finest)
	case o.wide*o.high > mostCells>>(2*o.finest)/(o.base*o.base):
		return fmt.Errorf("%d x %d patches with %d x %d cells, and %d levels more: above %d cells", o.wide, o.high, o.base, o.base, o.finest, mostCells)
	case o.phases < 1 || o.steps < 1 || o.regrid < 1 || o.every < 1 || o.most < 1 || o.pause < 0:
		return fmt.Errorf("--phases %d, --steps %d, --regrid %d, --every %d, --most %d, --pause %v: at least 1, and no negative time", o.phases, o.steps, o.regrid, o.every, o.most, o.pause)
	}
	return nil
}
