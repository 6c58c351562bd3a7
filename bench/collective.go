// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"time"

	"gompi/mpi"
)

// sides are the buffers of a collective, with as many blocks as each rank needs.
type sides struct {
	c             *mpi.Comm
	size          int
	root          bool
	send, recv    []byte    // one block
	manyIn, many  []byte    // a block for each rank
	sum, total    []float64 // one block
	manySum       []float64 // a block for each rank
	counts, zeros []int     // of the blocks in bytes; none
	elems         []int     // of the blocks in float64
}

// shape tells which buffers a collective has.
type shape uint8

const (
	oneToMany shape = 1 << iota // send, many
	manyToOne                   // manyIn, recv
	manyToAll                   // manyIn, many; a size is all blocks together
	sums                        // sum, total
	manySums                    // manySum, total
	atRoot                      // the buffer of many blocks exists at rank 0 only
)

func newSides(c *mpi.Comm, s shape, bytes int) *sides {
	d := &sides{c: c, size: c.Size(), root: c.Rank() == 0}
	if s&manyToAll != 0 {
		bytes = (bytes + d.size - 1) / d.size
	}
	all := bytes * d.size
	if s&atRoot != 0 && !d.root {
		all = 0
	}
	if s&oneToMany != 0 {
		d.send, d.many = make([]byte, bytes), make([]byte, all)
	}
	if s&manyToOne != 0 {
		d.manyIn, d.recv = make([]byte, all), make([]byte, bytes)
	}
	if s&manyToAll != 0 {
		d.manyIn, d.many = make([]byte, all), make([]byte, all)
	}
	if s&sums != 0 {
		d.sum, d.total = make([]float64, bytes/8), make([]float64, bytes/8)
	}
	if s&manySums != 0 {
		d.manySum, d.total = make([]float64, all/8), make([]float64, bytes/8)
	}
	// Touched, as in the C programs: page faults are not measured.
	for _, b := range [...][]byte{d.send, d.recv, d.manyIn, d.many} {
		clear(b)
	}
	for _, b := range [...][]float64{d.sum, d.total, d.manySum} {
		clear(b)
	}
	for range d.size {
		d.counts = append(d.counts, bytes)
		d.elems = append(d.elems, bytes/8)
	}
	return d
}

// collective makes the benchmark of a collective in which every rank waits for
// every other: calls follow each other, and rank 0's clock counts.
func collective(name, help string, s shape, call func(d *sides) error) Benchmark {
	return Benchmark{Name: name, Help: help, Bytes: collectiveSizes, shape: s, prepare: func(world *mpi.Comm, _ *Options, bytes int) loop {
		d := newSides(world, s, bytes)
		return loop{ops: 1, run: timed(func(n int) error {
			for range n {
				if err := call(d); err != nil {
					return err
				}
			}
			return nil
		})}
	}}
}

// rooted makes the benchmark of a collective in which ranks need not wait for all others.
// Only the time inside the call counts. A barrier separates the calls: otherwise some
// ranks would run ahead, and the time would be that of filling buffers.
func rooted(name, help string, s shape, call func(d *sides) error) Benchmark {
	return Benchmark{Name: name, Help: help + ", time inside the call, mean of the ranks", Bytes: collectiveSizes, shape: s,
		prepare: func(world *mpi.Comm, _ *Options, bytes int) loop {
			d := newSides(world, s, bytes)
			return loop{ops: 1, whose: mean, run: func(n int) (spent time.Duration, err error) {
				for range n {
					t := time.Now()
					if err := call(d); err != nil {
						return 0, err
					}
					spent += time.Since(t)
					if err := world.Barrier(); err != nil {
						return 0, err
					}
				}
				return spent, nil
			}}
		}}
}

func collectiveBenchmarks() []Benchmark {
	barrier := collective("barrier", "barrier of all ranks", 0, func(d *sides) error { return d.c.Barrier() })
	barrier.Bytes = nil
	return []Benchmark{
		barrier,
		rooted("bcast", "broadcast from rank 0", oneToMany|atRoot, func(d *sides) error { return mpi.Bcast(d.c, d.send, 0) }),
		rooted("gather", "a block of each rank to rank 0", oneToMany|atRoot, func(d *sides) error { return mpi.Gather(d.c, d.send, d.many, 0) }),
		rooted("gatherv", "as gather, lengths given", oneToMany|atRoot, func(d *sides) error { return mpi.Gatherv(d.c, d.send, d.many, d.counts, nil, 0) }),
		rooted("scatter", "a block for each rank from rank 0", manyToOne|atRoot, func(d *sides) error { return mpi.Scatter(d.c, d.manyIn, d.recv, 0) }),
		rooted("scatterv", "as scatter, lengths given", manyToOne|atRoot, func(d *sides) error { return mpi.Scatterv(d.c, d.manyIn, d.counts, nil, d.recv, 0) }),
		collective("allgather", "a block of each rank to all", oneToMany, func(d *sides) error { return mpi.Allgather(d.c, d.send, d.many) }),
		collective("allgatherv", "as allgather, lengths given", oneToMany, func(d *sides) error { return mpi.Allgatherv(d.c, d.send, d.many, d.counts, nil) }),
		collective("alltoall", "a block from each rank to each; a size is all blocks of a rank", manyToAll, func(d *sides) error { return mpi.Alltoall(d.c, d.manyIn, d.many) }),
		collective("alltoallv", "as alltoall, lengths given", manyToAll, func(d *sides) error {
			return mpi.Alltoallv(d.c, d.manyIn, d.counts, nil, d.many, d.counts, nil)
		}),
		rooted("reduce", "sum of float64 at rank 0", sums, func(d *sides) error { return mpi.Reduce(d.c, d.sum, d.total, mpi.Sum, 0) }),
		collective("allreduce", "sum of float64 over all ranks", sums, func(d *sides) error { return mpi.Allreduce(d.c, d.sum, d.total, mpi.Sum) }),
		collective("reduce_scatter_block", "sums of float64, a block of them to each rank", manySums, func(d *sides) error {
			return mpi.ReduceScatterBlock(d.c, d.manySum, d.total, mpi.Sum)
		}),
		collective("reduce_scatter", "as reduce_scatter_block, lengths given", manySums, func(d *sides) error {
			return mpi.ReduceScatter(d.c, d.manySum, d.total, d.elems, mpi.Sum)
		}),
		rooted("scan", "sum of float64 over the ranks up to each", sums, func(d *sides) error { return mpi.Scan(d.c, d.sum, d.total, mpi.Sum) }),
		rooted("exscan", "sum of float64 over the ranks below each", sums, func(d *sides) error { return mpi.Exscan(d.c, d.sum, d.total, mpi.Sum) }),
	}
}
