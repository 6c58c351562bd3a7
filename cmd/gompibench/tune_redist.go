// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/pflag"

	"gompi/bench/redist"
)

// modelCommand is a parsed `gompibench tune redist`.
type modelCommand struct {
	redist redistCommand
	mib    []float64
	cores  int
	into   string
}

func (c *modelCommand) flags() *pflag.FlagSet {
	f := newFlagSet("tune redist")
	f.StringVar(&c.into, "into", "", "`FILE` to write the model to (default: standard output)")
	f.IntVar(&c.cores, "cores", runtime.NumCPU(), "processors that the jobs have, or had")
	f.IntSliceVar(&c.redist.pairs, "pairs", []int{1, 2, 4}, "all ordered pairs of these numbers of ranks, `N1,N2,...`")
	f.Float64SliceVar(&c.mib, "mib", []float64{1, 64}, "sizes of the data in all, in MiB")
	f.IntVar(&c.redist.opt.Rounds, "rounds", 5, "how often each way")
	f.DurationVar(&c.redist.opt.Iteration, "iteration", redist.DefaultIteration, "time of an iteration")
	f.StringVar(&c.redist.into, "results", "", "`FILE` to which results are appended; what it has is not measured again (default: they are not kept)")
	return f
}

// parseModel reads the arguments after "tune redist".
func parseModel(args []string) (c *modelCommand, files []string, err error) {
	c = &modelCommand{}
	f := c.flags()
	if err := f.Parse(args); err != nil {
		return nil, nil, err
	}
	for _, n := range c.redist.pairs {
		if n < 1 {
			return nil, nil, fmt.Errorf("--pairs %v must be at least 1 each", c.redist.pairs)
		}
	}
	for _, n := range c.mib {
		if !(n > 0 && n <= 1<<20) {
			return nil, nil, fmt.Errorf("--mib %v must be above 0, at most 1048576", c.mib)
		}
	}
	if c.cores < 1 || c.redist.opt.Rounds < 1 || c.redist.opt.Iteration <= 0 {
		return nil, nil, fmt.Errorf("--cores %d and --rounds %d must be at least 1, --iteration %v above 0", c.cores, c.redist.opt.Rounds, c.redist.opt.Iteration)
	}
	if f.NArg() > 0 && c.redist.into != "" {
		return nil, nil, errors.New("either results are read, or written")
	}
	// auto chooses among these only: in place must be registered by the program, and NB
	// and T wait where WD does not.
	c.redist.methods, c.redist.strategies = "col,p2p,rma-lock,rma-lockall,pull", "blocking,wd"
	c.redist.opt.Variants, err = redist.Variants(c.redist.methods, c.redist.strategies)
	return c, f.Args(), err
}

func runModel(args []string) {
	c, files, err := parseModel(args)
	exitOn(err, modelUsage)
	exit(c.run(files))
}

func modelUsage() string {
	return "usage: gompibench tune redist [flags]             (measures; starts its jobs itself)\n" +
		"       gompibench tune redist [flags] RESULTS...  (of gompibench redist --json or --pairs)\n\n" +
		"Writes a model of this machine for gompirun --mam-model: what the methods of package mam\n" +
		"take to redistribute data, by which a program's auto chooses method and strategy (gompirun\n" +
		"-v says what, and why). What was not measured is as in the built-in model.\n\nflags:\n" +
		new(modelCommand).flags().FlagUsages()
}

// run measures, unless results are given, and writes the model.
func (c *modelCommand) run(files []string) error {
	if len(files) == 0 {
		if c.redist.into == "" {
			dir, err := os.MkdirTemp("", "gompibench")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			c.redist.into = filepath.Join(dir, "redist.json")
		}
		c.redist.out = io.Discard
		for _, mib := range c.mib {
			c.redist.mib, c.redist.opt.Bytes = mib, int64(mib*(1<<20))
			if err := c.redist.matrix(); err != nil {
				return err
			}
		}
		files = []string{c.redist.into}
	}
	rs, err := readResults(files)
	if err != nil {
		return err
	}
	m, err := redist.Fit(rs, c.cores)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if c.into != "" {
		return replaceFile(c.into, string(text)+"\n")
	}
	_, err = fmt.Printf("%s\n", text)
	return err
}
