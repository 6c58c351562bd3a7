// SPDX-License-Identifier: Apache-2.0

// Command hashtable counts how often each number of a random sequence comes up,
// in a hash table that is spread over the memory of all ranks. A rank inserts by
// CompareAndSwap and counts by Accumulate; the rank that has the memory does
// nothing for it:
//
//	gompirun -np 4 hashtable --inserts 200000 --keys 50000
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/pflag"

	"gompi/examples/options"
	"gompi/mpi"
)

func main() {
	inserts := pflag.Int("inserts", 200_000, "insertions of each rank")
	keys := pflag.Int("keys", 50_000, "the numbers are 1 to this")
	slots := pflag.Int("slots", 0, "places of each rank (default: twice what it needs)")
	options.Parse()
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		if *slots == 0 {
			*slots = 2 * (*keys/world.Size() + 1)
		}
		if *inserts < 0 || *keys < 1 || *slots < 1 {
			if world.Rank() > 0 {
				return nil
			}
			return fmt.Errorf("--inserts %d is below 0, or --keys %d or --slots %d is not above 0", *inserts, *keys, *slots)
		}
		return count(world, *inserts, *keys, *slots)
	})
}

// count fills the table, and checks that nothing was lost.
func count(world *mpi.Comm, inserts, keys, slots int) error {
	t, err := newTable(world, slots)
	if err != nil {
		return err
	}
	begin := time.Now()
	random := rand.New(rand.NewPCG(1, uint64(world.Rank())))
	for range inserts {
		if err := t.add(1 + random.Int64N(int64(keys))); err != nil {
			return err
		}
	}
	if err := t.settle(); err != nil {
		return err
	}
	took := time.Since(begin)
	mine := []int64{0, 0, t.probes} // of this rank's places; of this rank's insertions
	for key, n := range t.mine() {
		if n < 1 || key > int64(keys) {
			return fmt.Errorf("rank %d holds %d of number %d", world.Rank(), n, key)
		}
		mine[0]++
		mine[1] += n
	}
	all := make([]int64, len(mine))
	if err := mpi.Reduce(world, mine, all, mpi.Sum, 0); err != nil {
		return err
	}
	if err := t.free(); err != nil || world.Rank() > 0 {
		return err
	}
	if want := int64(inserts * world.Size()); all[1] != want {
		return fmt.Errorf("%d insertions became %d", want, all[1])
	}
	_, err = fmt.Printf("%d insertions of %d different numbers by %d ranks: %v each, %.2f places looked at\n",
		all[1], all[0], world.Size(), took/time.Duration(max(inserts, 1)), float64(all[2])/float64(max(all[1], 1)))
	return err
}
