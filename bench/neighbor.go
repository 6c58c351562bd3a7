// SPDX-License-Identifier: Apache-2.0

package bench

import "gompi/mpi"

// ring has all ranks in a circle, with buffers of a block for each neighbor.
type ring struct {
	c         *mpi.Comm
	in, out   []byte // two blocks
	block     []byte // one
	counts    []int  // of the blocks
	createErr error
}

func newRing(world *mpi.Comm, bytes int) *ring {
	r := &ring{in: make([]byte, 2*bytes), out: make([]byte, 2*bytes), block: make([]byte, bytes), counts: []int{bytes, bytes}}
	r.c, r.createErr = world.CartCreate([]int{world.Size()}, []bool{true}, false)
	return r
}

// neighbor makes the benchmark of a neighborhood collective: calls follow each
// other, and rank 0's clock counts.
func neighbor(name, help string, call func(r *ring) error) Benchmark {
	return Benchmark{Name: name, Help: help, Bytes: collectiveSizes, prepare: func(world *mpi.Comm, _ *Options, bytes int) loop {
		r := newRing(world, bytes)
		return loop{ops: 1, run: timed(func(n int) error {
			if r.createErr != nil {
				return r.createErr
			}
			for range n {
				if err := call(r); err != nil {
					return err
				}
			}
			return nil
		})}
	}}
}

func neighborBenchmarks() []Benchmark {
	return []Benchmark{
		neighbor("neighbor_allgather", "a block to both neighbors in a ring", func(r *ring) error {
			return mpi.NeighborAllgather(r.c, r.block, r.out)
		}),
		neighbor("neighbor_allgatherv", "as neighbor_allgather, lengths given", func(r *ring) error {
			return mpi.NeighborAllgatherv(r.c, r.block, r.out, r.counts, nil)
		}),
		neighbor("neighbor_alltoall", "a block to each neighbor in a ring", func(r *ring) error {
			return mpi.NeighborAlltoall(r.c, r.in, r.out)
		}),
		neighbor("neighbor_alltoallv", "as neighbor_alltoall, lengths given", func(r *ring) error {
			return mpi.NeighborAlltoallv(r.c, r.in, r.counts, nil, r.out, r.counts, nil)
		}),
	}
}
