// SPDX-License-Identifier: Apache-2.0

// Command hello prints who its ranks are and where they run:
//
//	gompirun -np 4 hello
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"gompi/mpi"
)

func main() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		host, err := os.Hostname()
		if err != nil {
			return err
		}
		_, err = fmt.Printf("hello from rank %d of %d on %s, pid %d, GOMAXPROCS %d\n",
			world.Rank(), world.Size(), host, os.Getpid(), runtime.GOMAXPROCS(0))
		return err
	})
}
