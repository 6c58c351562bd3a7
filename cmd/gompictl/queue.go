// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	"gompi/launcher/pool"
)

const queueHelp = `Usage: gompictl queue [HEAD]

Lists the jobs of your heads on this host (gompirun --head), or of one, in the order
in which they came: those that run, with their slots, and those that wait for some.
The other commands take a job as soon as it runs.

  STATE   waits; starts; runs; follows: it runs, and can be resized; to N: it is being
          resized, or the slots for N processes are promised to it
  FOR     how long it has waited, or run
  WANTS   how many slots it asks for
`

// queue shows the heads of this user.
func queue(_ context.Context, tty terminal, args []string) error {
	if len(args) > 1 {
		return usagef("queue needs no more than the name of one head")
	}
	names := args
	if len(args) == 0 {
		var err error
		if names, err = pool.Heads(); err != nil {
			return err
		}
		if len(names) == 0 {
			return fmt.Errorf("you have no head on this host: gompirun --head makes one")
		}
	}
	for _, name := range names {
		q, err := pool.Ask(name)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(tty.out, q.String()); err != nil {
			return err
		}
	}
	return nil
}
