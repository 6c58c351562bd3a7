// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"io"
	"os"
)

// SaidOnce is where a program writes what one of its ranks should say before
// they join the job, such as its usage: standard error of the rank that was
// started first and of a process without gompirun, nothing of the others.
//
//	flag.CommandLine.SetOutput(mpi.SaidOnce())
func SaidOnce() io.Writer {
	if r := os.Getenv("GOMPI_RANK"); r != "" && r != "0" {
		return io.Discard
	}
	return os.Stderr
}
