// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"

	"github.com/spf13/pflag"
)

// What commands share that have flags of their own.

// ownFlags are no flags yet of such a command.
func ownFlags(name string) *pflag.FlagSet {
	f := pflag.NewFlagSet("gompibench "+name, pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() {}
	return f
}

// outputFlags are those that say how results are printed.
func outputFlags(f *pflag.FlagSet, json *bool, transport *string) {
	f.BoolVar(json, "json", false, "one JSON object a line instead of a table")
	f.StringVar(transport, "transport", "", "what results call the transport (default: its name)")
	f.Bool("progress", false, "taken and passed over, as there is little to tell of")
}

// exitOn ends a command whose flags could not be read, or ask for help.
func exitOn(err error, usage func() string) {
	switch {
	case errors.Is(err, pflag.ErrHelp):
		_, err := io.WriteString(os.Stdout, usage())
		exit(err)
	case err != nil:
		exit(usageError{err})
	}
}
