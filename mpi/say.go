// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"io"
	"os"
)

// SaidOnce returns a writer for text that only one rank should print before the ranks join
// the job, such as usage. It is standard error in rank 0 of gompirun and in a process without
// gompirun, and discards the text in the other ranks. Local.
//
//	flag.CommandLine.SetOutput(mpi.SaidOnce())
func SaidOnce() io.Writer {
	if r := os.Getenv("GOMPI_RANK"); r != "" && r != "0" {
		return io.Discard
	}
	return os.Stderr
}
