// SPDX-License-Identifier: Apache-2.0

// Command empty joins its job and leaves: what the start and stop of a job
// costs.
package main

import (
	"context"

	"gompi/mpi"
)

func main() {
	mpi.Main(func(context.Context, *mpi.Comm) error { return nil })
}
