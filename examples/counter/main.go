// SPDX-License-Identifier: Apache-2.0

// Command counter counts primes as a task farm without a master: the next task
// is a number in rank 0's memory, which every rank fetches and increments by
// itself. Rank 0 computes as the others do and serves nobody:
//
//	gompirun -np 4 counter --limit 20000000 --task 50000
package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"gompi/examples/options"
	"gompi/mpi"
	"gompi/rma"
)

func main() {
	limit := pflag.Int64("limit", 20_000_000, "count the primes below this number")
	task := pflag.Int64("task", 50_000, "numbers in one task")
	options.Parse()
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		if *limit < 1 || *limit > 1<<40 || *task < 1 {
			if world.Rank() > 0 {
				return nil
			}
			return fmt.Errorf("--limit %d is not between 1 and 2^40, or --task %d is not above 0", *limit, *task)
		}
		return farm(world, *limit, *task)
	})
}

// farm takes tasks until there are no more.
func farm(world *mpi.Comm, limit, task int64) error {
	n := 0
	if world.Rank() == 0 {
		n = 1
	}
	win, err := rma.Allocate[int64](world, n)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := win.LockAll(0); err != nil {
		return err
	}
	var tasks, primes int64
	for s := newSieve(limit); ; tasks++ {
		next, err := rma.FetchAndOp(win, task, 0, 0, mpi.Sum)
		if err != nil {
			return err
		}
		if err := win.Flush(0); err != nil {
			return err
		}
		if next >= limit {
			break
		}
		primes += s.count(next, min(next+task, limit))
	}
	if err := win.UnlockAll(); err != nil {
		return err
	}
	if err := win.Free(); err != nil {
		return err
	}
	return report(world, limit, tasks, primes, time.Since(begin))
}

func report(world *mpi.Comm, limit, tasks, primes int64, took time.Duration) error {
	var all []int64
	if world.Rank() == 0 {
		all = make([]int64, 2*world.Size())
	}
	if err := mpi.Gather(world, []int64{primes, tasks}, all, 0); err != nil || world.Rank() > 0 {
		return err
	}
	var total int64
	var each []int64
	for i := 0; i < len(all); i += 2 {
		total += all[i]
		each = append(each, all[i+1])
	}
	_, err := fmt.Printf("%d primes below %d, by %d ranks with %d to %d tasks each in %v\n",
		total, limit, world.Size(), slices.Min(each), slices.Max(each), took.Round(time.Microsecond))
	return err
}

// sieve finds primes in intervals.
type sieve struct {
	small     []int64 // the primes up to the root of the limit
	composite []bool  // of the interval
}

func newSieve(limit int64) *sieve {
	s := new(sieve)
	for p := int64(2); p*p < limit; p++ {
		if !slices.ContainsFunc(s.small, func(q int64) bool { return q*q <= p && p%q == 0 }) {
			s.small = append(s.small, p)
		}
	}
	return s
}

// count is the number of primes in [lo, hi).
func (s *sieve) count(lo, hi int64) (n int64) {
	s.composite = append(s.composite[:0], make([]bool, hi-lo)...)
	for _, p := range s.small {
		for m := max(p*p, (lo+p-1)/p*p); m < hi; m += p {
			s.composite[m-lo] = true
		}
	}
	for i := max(lo, 2); i < hi; i++ {
		if !s.composite[i-lo] {
			n++
		}
	}
	return n
}
