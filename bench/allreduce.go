// SPDX-License-Identifier: Apache-2.0

package bench

import "gompi/mpi"

func prepareAllreduce(world *mpi.Comm, _ *Options, bytes int) loop {
	send, recv := make([]float64, bytes/8), make([]float64, bytes/8)
	return loop{ops: 1, run: timed(func(n int) error {
		for range n {
			if err := mpi.Allreduce(world, send, recv, mpi.Sum); err != nil {
				return err
			}
		}
		return nil
	})}
}
