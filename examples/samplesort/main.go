// SPDX-License-Identifier: Apache-2.0

// Command samplesort sorts numbers that lie on all ranks: samples of them tell
// which rank gets which interval, and one Alltoallv brings them there:
//
//	gompirun -np 4 samplesort --keys 1000000
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"gompi/examples/options"
	"gompi/mpi"
)

func main() {
	n := pflag.Int("keys", 1_000_000, "numbers on each rank")
	options.Parse()
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		if *n < 1 {
			if world.Rank() > 0 {
				return nil
			}
			return fmt.Errorf("--keys %d is not above 0", *n)
		}
		return run(world, *n)
	})
}

func run(world *mpi.Comm, n int) error {
	random := rand.New(rand.NewPCG(1, uint64(world.Rank())))
	keys := make([]uint64, n)
	var sum uint64
	for i := range keys {
		keys[i] = random.Uint64()
		sum += keys[i]
	}
	begin := time.Now()
	sorted, err := sortAll(world, keys)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	if err := check(world, sorted, sum); err != nil {
		return err
	}
	shares, err := mpi.GatherOne(world, len(sorted), 0)
	if err != nil || world.Rank() > 0 {
		return err
	}
	_, err = fmt.Printf("%d numbers sorted by %d ranks in %v, %d to %d on each\n",
		n*world.Size(), world.Size(), took.Round(time.Microsecond), slices.Min(shares), slices.Max(shares))
	return err
}

// samples is how many numbers each rank offers for each border: the more, the
// more even are the intervals.
const samples = 32

// sortAll sorts the numbers of all ranks: rank 0 gets the least ones, the last
// rank the greatest. keys is sorted, too.
func sortAll(world *mpi.Comm, keys []uint64) ([]uint64, error) {
	size := world.Size()
	slices.Sort(keys)
	mine := make([]uint64, samples*size)
	for i := range mine {
		mine[i] = keys[len(keys)*i/len(mine)]
	}
	all := make([]uint64, len(mine)*size)
	if err := mpi.Allgather(world, mine, all); err != nil {
		return nil, err
	}
	slices.Sort(all)

	sendCounts, sendDispls := make([]int, size), make([]int, size)
	end := 0
	for rank := range size {
		sendDispls[rank] = end
		if end = len(keys); rank < size-1 {
			end, _ = slices.BinarySearch(keys, all[len(mine)*(rank+1)])
		}
		sendCounts[rank] = end - sendDispls[rank]
	}
	recvCounts := make([]int, size)
	if err := mpi.Alltoall(world, sendCounts, recvCounts); err != nil {
		return nil, err
	}
	total := 0
	for _, n := range recvCounts {
		total += n
	}
	out := make([]uint64, total)
	// nil: what comes from the ranks lies side by side.
	if err := mpi.Alltoallv(world, keys, sendCounts, sendDispls, out, recvCounts, nil); err != nil {
		return nil, err
	}
	slices.Sort(out)
	return out, nil
}

// check compares the least number of each rank with all of the ranks below, and
// what all sums give with what it was.
func check(world *mpi.Comm, sorted []uint64, sum uint64) error {
	var greatest uint64
	for _, k := range sorted {
		sum -= k
		greatest = max(greatest, k)
	}
	below, err := mpi.ExscanOne(world, greatest, mpi.Max)
	if err != nil {
		return err
	}
	if world.Rank() > 0 && len(sorted) > 0 && sorted[0] < below {
		return fmt.Errorf("%d is here, and %d on a rank below", sorted[0], below)
	}
	if sum, err = mpi.AllreduceOne(world, sum, mpi.Sum); err == nil && sum != 0 {
		err = errors.New("numbers were lost")
	}
	return err
}
