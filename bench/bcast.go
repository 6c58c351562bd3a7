// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"time"

	"gompi/mpi"
)

// prepareBcast counts only the time inside Bcast: without the barrier a root
// would run ahead, and its time would be that of filling buffers.
func prepareBcast(world *mpi.Comm, _ *Options, bytes int) loop {
	buf := make([]byte, bytes)
	return loop{ops: 1, whose: mean, run: func(n int) (spent time.Duration, err error) {
		for range n {
			t := time.Now()
			if err := mpi.Bcast(world, buf, 0); err != nil {
				return 0, err
			}
			spent += time.Since(t)
			if err := world.Barrier(); err != nil {
				return 0, err
			}
		}
		return spent, nil
	}}
}
