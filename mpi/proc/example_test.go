// SPDX-License-Identifier: Apache-2.0

package proc_test

import (
	"context"
	"fmt"

	"gompi/mpi"
	"gompi/mpi/proc"
)

// A task farm of any program: in each round as many tasks as there are free slots.
func Example() {
	mpi.Main(func(ctx context.Context, world *mpi.Comm) error {
		p := world.Process()
		for task := 0; task < 100; {
			reqs, err := proc.Allocate(ctx, p, proc.Places{N: 100 - task, Soft: true, Execs: []string{"./simulate"}})
			if err != nil {
				return err
			}
			for i, r := range reqs {
				if err := proc.SetArgs(r, "--case", fmt.Sprint(task+i)); err != nil {
					return err
				}
			}
			task += len(reqs)
			if err := mpi.Startall(reqs); err != nil {
				return err
			}
			for range 2 { // started, exited
				if err := mpi.Waitall(reqs); err != nil {
					return err
				}
			}
			for _, r := range reqs {
				if x, _ := proc.ExitOf(r); x.Status != 0 {
					fmt.Println(proc.Nodename(r), x.How)
				}
			}
			if err := mpi.FreeAll(reqs); err != nil {
				return err
			}
		}
		return nil
	})
}
