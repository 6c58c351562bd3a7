// SPDX-License-Identifier: Apache-2.0

// Command gompirun starts the processes of an MPI program and watches them.
// docs/running.md describes it.
package main

import (
	"os"

	"gompi/launcher"
)

func main() { os.Exit(launcher.Main(os.Args[1:])) }
