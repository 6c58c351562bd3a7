// SPDX-License-Identifier: Apache-2.0

// Command clientserver is two programs that know each other by a name only. A server
// publishes a port under it and sorts numbers for whoever connects; clients look the name
// up, connect, and have numbers sorted:
//
//	gompirun --ft -np 2 clientserver --serve : -np 3 clientserver
//
// The name is known in one job. Clients that are a job of their own are told the port,
// which the server prints:
//
//	gompirun -np 3 clientserver --port PORT
//
// Either may be killed (--ft: the job goes on). A server loses a client and serves the
// others. When the server is killed its name is free: the next one, which has waited for
// that, takes it, and the clients, who meet an error, look it up again.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"gompi/examples/options"
	"gompi/mpi"
)

func main() {
	serve := pflag.Bool("serve", false, "be a server")
	name := pflag.String("name", "sort", "name of the service")
	port := pflag.String("port", "", "connect to this PORT of another job in place of a name")
	idle := pflag.Duration("idle", 3*time.Second, "a server ends when it has had no client for so long")
	requests := pflag.Int("requests", 200, "how often a client asks")
	numbers := pflag.Int("numbers", 10_000, "numbers of a request")
	pause := pflag.Duration("pause", 20*time.Millisecond, "rest of a client after each request, to be watched")
	patience := pflag.Duration("patience", 10*time.Second, "for so long a client looks for a server")
	options.Parse()
	mpi.Main(func(ctx context.Context, world *mpi.Comm) error {
		if *requests < 0 || *numbers < 1 {
			return fmt.Errorf("--requests %d is below 0, or --numbers %d not above 0", *requests, *numbers)
		}
		// The program is one of one process: who else has been started with it does not
		// count.
		process := world.Process()
		if *serve {
			s := &server{process: process, name: *name, idle: *idle}
			return s.run(ctx)
		}
		c := &client{process: process, name: *name, port: *port, patience: *patience}
		return c.run(ctx, *requests, *numbers, *pause)
	})
}

// Tags of what a client and a server say to each other.
const (
	tagSort   = 1 // numbers, to be sorted
	tagSorted = 2 // the answer
	tagBye    = 3 // the client has no more
)

// gone reports whether an error says that the other program is not there any more.
func gone(err error) bool {
	return errors.Is(err, mpi.ErrProcFailed) || errors.Is(err, mpi.ErrPort) || errors.Is(err, mpi.ErrName)
}
