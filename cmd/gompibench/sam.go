// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"gompi/bench/report"
	"gompi/bench/sam"
	"gompi/mpi"
)

// samCommand is a parsed `gompibench sam`.
type samCommand struct {
	config      string
	output, csv string
	repetitions int
	variant     int
	repetition  int
	list, print bool
	json        bool
	progress    bool
	limit       time.Duration
	gompirun    []string // further flags for gompirun
	transport   string
	dir         string
}

func (c *samCommand) flags() *pflag.FlagSet {
	f := newFlagSet("sam")
	f.IntVar(&c.repetitions, "reps", 1, "how often each variant is run")
	f.StringVarP(&c.output, "output", "o", "", "`FILE` of results, a JSON line each; what it has already is not run again")
	f.StringVar(&c.csv, "csv", "", "write all results of --output as tables `PREFIX`-global.csv, -malleability.csv and -iterations.csv")
	f.IntVar(&c.variant, "variant", -1, "run only this one, by its number (--list)")
	f.BoolVar(&c.list, "list", false, "print the variants, and run none")
	f.BoolVar(&c.print, "print", false, "print the configuration, and run nothing")
	f.DurationVar(&c.limit, "limit", 10*time.Minute, "`TIME` after which a run counts as failed")
	f.StringArrayVar(&c.gompirun, "gompirun", nil, "a further `FLAG` of gompirun, as --gompirun=--spare=4 (more than once)")
	f.StringVar(&c.dir, "dir", "", "where stages have their files (default: the directory for temporary ones)")
	f.IntVar(&c.repetition, "repetition", 0, "what results call the run, under gompirun")
	f.BoolVar(&c.json, "json", false, "one JSON object a line instead of a table")
	f.StringVar(&c.transport, "transport", "", "what results call the transport (default: its name)")
	f.BoolVar(&c.progress, "progress", isTerminal(os.Stderr), "say on stderr what was run, and how much time is left (default: if it is a terminal)")
	return f
}

// parseSam reads the arguments after "sam".
func parseSam(args []string) (*samCommand, error) {
	c := &samCommand{}
	f := c.flags()
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case f.NArg() == 0:
		return nil, errors.New("sam: which configuration? cg comes along")
	case f.NArg() > 1:
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(1))
	case c.repetitions < 1 || c.repetition < 0 || c.variant < -1 || c.limit <= 0:
		return nil, fmt.Errorf("--reps %d, --repetition %d, --variant %d, --limit %v", c.repetitions, c.repetition, c.variant, c.limit)
	case c.csv != "" && c.output == "":
		return nil, errors.New("--csv needs --output: it writes the results of that")
	}
	c.config = f.Arg(0)
	return c, nil
}

func samUsage() string {
	return "usage: gompibench sam [flags] CONFIG     (starts each run under gompirun)\n" +
		"       gompirun -np PROCS gompibench sam [--variant N] CONFIG    (one run; PROCS of the first group)\n\n" +
		"Runs a synthetic application whose number of ranks changes by package mam: the configurations\n" +
		"of Proteo's SAM, JSON or INI, with alternatives (\"2:4\"); all combinations are run. CONFIG cg\n" +
		"comes along: the emulation of a conjugate gradient. docs/sam.md says what is in a file.\n\n" +
		"The table has milliseconds of the whole (without calibrations), the median of all iterations,\n" +
		"and of each change: rms (until it was granted), spawn (until newcomers are ready), async\n" +
		"(constant data, while sources iterate), user, sync (data at the commit), touch (of new memory),\n" +
		"commit, total (from the request until the new ranks go on).\n\nflags:\n" +
		new(samCommand).flags().FlagUsages()
}

func runSam(args []string) {
	c, err := parseSam(args)
	exitOn(err, samUsage)
	if launched() && !c.list && !c.print {
		mpi.Main(c.rank)
		return
	}
	exit(c.matrix())
}

// text returns the text of the configuration.
func (c *samCommand) text() ([]byte, error) {
	if c.config == "cg" {
		return sam.CG, nil
	}
	return os.ReadFile(c.config)
}

func (c *samCommand) file() (*sam.File, error) {
	text, err := c.text()
	if err != nil {
		return nil, err
	}
	f, err := sam.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.config, err)
	}
	if c.variant >= len(f.Variants) {
		return nil, usageError{fmt.Errorf("%s has variants 0 to %d, none %d", c.config, len(f.Variants)-1, c.variant)}
	}
	if c.variant >= 0 {
		f.Variants = f.Variants[c.variant : c.variant+1]
	}
	return f, nil
}

// rank runs in each rank.
func (c *samCommand) rank(ctx context.Context, world *mpi.Comm) error {
	o := sam.Options{Name: filepath.Base(c.config), Repetition: c.repetition, Transport: c.transport, Dir: c.dir}
	o.Load = func() (*sam.Config, string, error) {
		f, err := c.file()
		if err != nil {
			return nil, "", err
		}
		if len(f.Variants) > 1 {
			return nil, "", fmt.Errorf("%s has %d variants: --variant says which one", c.config, len(f.Variants))
		}
		return f.Variants[0].Config, f.Variants[0].Label(f.Axes), nil
	}
	return sam.Run(ctx, world, o, printer(c.json, report.SamHeader, report.SamRow))
}

// matrix runs all variants, each as a job.
func (c *samCommand) matrix() error {
	if c.print {
		text, err := c.text()
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(text)
		return err
	}
	f, err := c.file()
	if err != nil {
		return err
	}
	for _, err := range f.Refused {
		fmt.Fprintln(os.Stderr, "gompibench: left out:", err)
	}
	if c.list {
		for _, v := range f.Variants {
			fmt.Printf("%4d  %s\n", v.Index, v.Label(f.Axes))
		}
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	m := sam.Matrix{
		File: f, Repetitions: c.repetitions, Path: c.output, Start: c.start,
		Emit: printer(c.json, report.SamHeader, report.SamRow), Log: os.Stderr, Progress: c.progress,
	}
	err = m.Run(ctx)
	if c.csv != "" && ctx.Err() == nil {
		err = errors.Join(err, writeCSV(c.output, c.csv))
	}
	return err
}

// start runs one variant as a job.
func (c *samCommand) start(ctx context.Context, v *sam.Variant, repetition int) (r report.Result, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	program, err := find("gompirun")
	if err != nil {
		return r, err
	}
	np := strconv.Itoa(v.Config.Groups[0].Procs)
	args := append([]string{"-np", np, "--timeout", c.limit.String()}, c.gompirun...)
	args = append(args, self, "sam", "--json", "--variant", strconv.Itoa(v.Index), "--repetition", strconv.Itoa(repetition),
		"--transport", c.transport, "--dir", c.dir, c.config)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), envLaunched+"=1")
	var out, says bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &says
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return r, fmt.Errorf("gompirun -np %s: %w: %s", np, err, strings.TrimSpace(says.String()))
	}
	if _, err := io.Copy(os.Stderr, &says); err != nil { // output of -v
		return r, err
	}
	rs, err := report.Read("the run", &out)
	if err == nil && (len(rs) != 1 || rs[0].Sam == nil || rs[0].Sam.Key != v.Config.Key()) {
		err = fmt.Errorf("the run has told %d results, or of another configuration: was %s changed?", len(rs), c.config)
	}
	if err != nil {
		return r, err
	}
	return rs[0], nil
}

// writeCSV makes the tables of a file of results.
func writeCSV(path, prefix string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	rs, err := report.Read(path, f)
	if err != nil {
		return err
	}
	for name, table := range report.SamTables(rs) {
		var b bytes.Buffer
		if err := report.WriteCSV(&b, table); err != nil {
			return err
		}
		if err := os.WriteFile(prefix+"-"+name+".csv", b.Bytes(), 0o666); err != nil {
			return err
		}
	}
	return nil
}
