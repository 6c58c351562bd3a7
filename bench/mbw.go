// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"sync"

	"gompi/mpi"
)

func prepareMbw(world *mpi.Comm, o *Options, bytes int) loop {
	half := world.Size() / 2
	flows := make([]*stream, o.Goroutines)
	errs := make([]error, o.Goroutines)
	for k := range flows {
		flows[k] = newStream(world, bytes, k)
	}
	one := func(k, n int) {
		if r := world.Rank(); r < half {
			errs[k] = flows[k].send(n, r+half)
		} else {
			errs[k] = flows[k].recv(n, r-half)
		}
	}
	var wg sync.WaitGroup
	return loop{ops: window * o.Goroutines, whose: senders, run: timed(func(n int) error {
		for k := 1; k < len(flows); k++ {
			wg.Go(func() { one(k, n) })
		}
		one(0, n)
		wg.Wait()
		return errors.Join(errs...)
	})}
}
