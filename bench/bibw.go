// SPDX-License-Identifier: Apache-2.0

package bench

import "gompi/mpi"

func prepareBibw(world *mpi.Comm, _ *Options, bytes int) loop {
	out, in := make([]byte, bytes), make([]byte, bytes)
	reqs := make([]mpi.Request, 2*window)
	peer := 1 - world.Rank()
	return loop{ops: 2 * window, run: timed(func(n int) error {
		for range n {
			for i := range window {
				reqs[i] = mpi.Irecv(world, in, peer, tagData)
			}
			for i := range window {
				reqs[window+i] = mpi.Isend(world, out, peer, tagData)
			}
			if err := mpi.Waitall(reqs); err != nil {
				return err
			}
		}
		return nil
	})}
}
