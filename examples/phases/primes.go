// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"

	"gompi/mpi"
)

// sieve finds the primes up to the root of the limit.
func (j *job) sieve() error {
	root := int64(math.Sqrt(float64(j.limit)))
	for ; root*root > j.limit; root-- {
	}
	for ; (root+1)*(root+1) <= j.limit; root++ {
	}
	struck := make([]bool, root+1)
	for p := int64(2); p <= root; p++ {
		if struck[p] {
			continue
		}
		j.primes = append(j.primes, p)
		for n := p * p; n <= root; n += p {
			struck[n] = true
		}
	}
	return nil
}

// piece is how many numbers are sieved at a time.
const piece = 1 << 16

// count counts all primes, each rank in its pieces.
func (j *job) count() error {
	found := int64(0)
	struck := make([]bool, piece)
	for low := int64(j.comm.Rank()) * piece; low <= j.limit; low += int64(j.comm.Size()) * piece {
		clear(struck)
		for _, p := range j.primes {
			if p*p >= low+piece {
				break
			}
			for n := max(p*p, (low+p-1)/p*p); n < low+piece; n += p {
				struck[n-low] = true
			}
		}
		for i, s := range struck {
			if n := low + int64(i); !s && n >= 2 && n <= j.limit {
				found++
			}
		}
	}
	var err error
	j.found, err = mpi.AllreduceOne(j.comm, found, mpi.Sum)
	return err
}

// check counts them by Legendre's formula: of the numbers up to the limit those that
// no prime up to its root divides are 1 and the larger primes.
func (j *job) check() error {
	divided := int64(0) // by a prime, and by no smaller one
	for i := j.comm.Rank(); i < len(j.primes); i += j.comm.Size() {
		divided += j.undivided(j.limit/j.primes[i], i)
	}
	divided, err := mpi.AllreduceOne(j.comm, divided, mpi.Sum)
	if err != nil {
		return err
	}
	if n := j.limit - divided - 1 + int64(len(j.primes)); n != j.found {
		return fmt.Errorf("%d primes up to %d were counted, and %d by Legendre's formula", j.found, j.limit, n)
	}
	return nil
}

// undivided counts the numbers from 1 to n that none of the first k primes divides.
func (j *job) undivided(n int64, k int) int64 {
	count := n
	for i := range k {
		p := j.primes[i]
		if p > n {
			break
		}
		count -= j.undivided(n/p, i)
	}
	return count
}
