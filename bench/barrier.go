// SPDX-License-Identifier: Apache-2.0

package bench

import "gompi/mpi"

func prepareBarrier(world *mpi.Comm, _ *Options, _ int) loop {
	return loop{ops: 1, run: timed(func(n int) error {
		for range n {
			if err := world.Barrier(); err != nil {
				return err
			}
		}
		return nil
	})}
}
