// SPDX-License-Identifier: Apache-2.0

// Package options reads the command lines of the examples, of all in the same way: every
// rank has the same flags with the same values, and --help and errors of usage are printed
// once.
package options

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"gompi/mpi"
)

// Parse sets the flags that the program has defined with package pflag. With an argument
// that is no flag the program ends there, with status 1.
func Parse() {
	pflag.CommandLine.SetOutput(mpi.SaidOnce())
	pflag.Usage = pflag.PrintDefaults
	pflag.Parse()
	if pflag.NArg() > 0 {
		// In the job: the end of one rank outside of it can come before another has said why.
		mpi.Main(func(context.Context, *mpi.Comm) error {
			return fmt.Errorf("arguments %q: it takes flags only, see --help", pflag.Args())
		})
	}
}
