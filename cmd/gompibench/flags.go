// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"gompi/bench/report"
)

// This file has what commands with flags of their own share.

// newFlagSet makes an empty set of flags for a command.
func newFlagSet(name string) *pflag.FlagSet {
	f := pflag.NewFlagSet("gompibench "+name, pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() {}
	return f
}

// outputFlags declares the flags for the form of results.
func outputFlags(f *pflag.FlagSet, json *bool, transport *string) {
	f.BoolVar(json, "json", false, "one JSON object a line instead of a table")
	f.StringVar(transport, "transport", "", "what results call the transport (default: its name)")
	f.Bool("progress", false, "taken and passed over, as there is little to tell of")
}

// progressFlag declares the flag of commands that show their progress.
func progressFlag(f *pflag.FlagSet, progress *bool) {
	f.BoolVar(progress, "progress", isTerminal(os.Stderr), "show on stderr how far it is (default: if it is a terminal)")
}

// parseNoArgs reads the flags of a command that takes no arguments.
func parseNoArgs(f *pflag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return nil
}

// checkTurns checks the flags of commands whose blocks take turns.
func checkTurns(rounds int, both time.Duration) error {
	if rounds < 1 || both < 0 {
		return fmt.Errorf("--rounds %d must be at least 1, --until-both %v not negative", rounds, both)
	}
	return nil
}

// untilInterrupt is for ranks that end at the next round or size after an interrupt, and
// not at once.
func untilInterrupt(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, unix.SIGTERM)
}

// printer prints results: as JSON, or as rows below a header that comes with the first.
func printer(asJSON bool, header func(io.Writer) error, row func(io.Writer, report.Result) error) func(report.Result) error {
	if asJSON {
		return func(r report.Result) error { return report.Write(os.Stdout, r) }
	}
	begun := false
	return func(r report.Result) error {
		if !begun {
			if err := header(os.Stdout); err != nil {
				return err
			}
			begun = true
		}
		return row(os.Stdout, r)
	}
}

// exitOn ends a command whose flags are wrong, or ask for help.
func exitOn(err error, usage func() string) {
	switch {
	case errors.Is(err, pflag.ErrHelp):
		_, err := io.WriteString(os.Stdout, usage())
		exit(err)
	case err != nil:
		exit(usageError{err})
	}
}
