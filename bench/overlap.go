// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"time"

	"golang.org/x/sys/unix"

	"gompi/bench/report"
	"gompi/mpi"
)

// overlapBlocks is the number of blocks of a measurement of overlap.
const overlapBlocks = 50

// work is computing without calls of the library.
type work struct {
	turns int64    // nanoseconds if it is idle
	idle  bool     // sleep instead
	mem   []uint64 // read this instead, round and round
	at    int      // where in it
	x     uint64   // so that the loop cannot be left out
}

// do computes: each turn needs the result of the one before.
func (w *work) do() {
	switch {
	case w.idle:
		w.sleep()
		return
	case w.mem != nil:
		w.read()
		return
	}
	x := w.x
	for range w.turns {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	w.x = x
}

// cacheLine is in numbers of 8 bytes.
const cacheLine = 8

// read reads memory, a cache line each turn: that costs as much as all of it.
func (w *work) read() {
	x, at := w.x, w.at
	for range w.turns {
		x += w.mem[at]
		if at += cacheLine; at >= len(w.mem) {
			at = 0
		}
	}
	w.x, w.at = x, at
}

// sleep blocks the thread, which comes back at once: that of a goroutine may
// have to wait for a processor of Go's.
func (w *work) sleep() {
	if w.turns > 0 {
		t := unix.NsecToTimespec(w.turns)
		_ = unix.Nanosleep(&t, nil) // a signal ends it early
	}
}

// nonblocking makes the benchmark of a collective as a request that is waited
// for at once; with Options.Overlap also with computing in between. The time
// counts as in rooted.
func nonblocking(name string, s shape, start func(d *sides) mpi.Request) Benchmark {
	return Benchmark{
		Name: "i" + name, Help: name + " as a request (--overlap: with computing meanwhile), mean of the ranks", Bytes: collectiveSizes, shape: s, overlaps: true,
		prepare: func(world *mpi.Comm, o *Options, bytes int) loop {
			d, w := newSides(world, s, bytes), &work{x: 1, idle: o.Idle}
			return loop{ops: 1, whose: mean, work: w, run: func(n int) (spent time.Duration, err error) {
				for range n {
					t := time.Now()
					r := start(d)
					w.do()
					if _, err := r.Wait(); err != nil {
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

func nonblockingBenchmarks() []Benchmark {
	barrier := nonblocking("barrier", 0, func(d *sides) mpi.Request { return d.c.Ibarrier() })
	barrier.Bytes = nil
	return []Benchmark{
		barrier,
		nonblocking("bcast", oneToMany|atRoot, func(d *sides) mpi.Request { return mpi.Ibcast(d.c, d.send, 0) }),
		nonblocking("allgather", oneToMany, func(d *sides) mpi.Request { return mpi.Iallgather(d.c, d.send, d.many) }),
		nonblocking("alltoall", manyToAll, func(d *sides) mpi.Request { return mpi.Ialltoall(d.c, d.manyIn, d.many) }),
		nonblocking("alltoallv", manyToAll, func(d *sides) mpi.Request {
			return mpi.Ialltoallv(d.c, d.manyIn, d.counts, nil, d.many, d.counts, nil)
		}),
		nonblocking("reduce", sums, func(d *sides) mpi.Request { return mpi.Ireduce(d.c, d.sum, d.total, mpi.Sum, 0) }),
		nonblocking("allreduce", sums, func(d *sides) mpi.Request { return mpi.Iallreduce(d.c, d.sum, d.total, mpi.Sum) }),
	}
}

// overlap is the share of the collective's time, in per cent, that is hidden
// behind computing for as long as it takes alone. alone is that time in
// microseconds by rank 0, nearly: all three times are measured here, in turn.
func (l *loop) overlap(world *mpi.Comm, o *Options, alone float64) (float64, error) {
	iters, err := l.work.calibrate(world, o, alone)
	if err != nil {
		return 0, err
	}
	blocks := min(iters, overlapBlocks)
	each, turns := iters/blocks, l.work.turns
	var usec [3][]float64 // alone, computing, both
	compute := timed(func(n int) error {
		for range n {
			l.work.do()
		}
		return nil
	})
	for range blocks {
		for k, run := range []func(int) (time.Duration, error){l.run, compute, l.run} {
			l.work.turns = turns
			if k == 0 {
				l.work.turns = 0
			}
			if err := world.Barrier(); err != nil {
				return 0, err
			}
			d, err := run(each)
			if err != nil {
				return 0, err
			}
			usec[k] = append(usec[k], float64(d.Nanoseconds())/1e3/float64(each))
		}
	}
	var median [3]float64
	for k := range usec {
		all, err := l.gather(world, usec[k])
		if err != nil {
			return 0, err
		}
		median[k] = report.Median(all)
	}
	return overlapped(median[0], median[1], median[2]), nil
}

// calibrate sets turns that take as long as usec on all ranks at once, and
// returns a number of iterations. Rank 0 decides.
func (w *work) calibrate(world *mpi.Comm, o *Options, usec float64) (iters int, err error) {
	want := time.Duration(usec * 1e3)
	plan := make([]int64, 2)
	for n := 1 << 10; plan[0] == 0; n *= 2 {
		w.turns = int64(n)
		t := time.Now()
		w.do()
		if world.Rank() == 0 {
			plan[0] = int64(fit(n, time.Since(t), want))
			plan[1] = max(1, int64(o.Time/max(5*want, 1)))
			if o.Iters > 0 {
				plan[1] = int64(o.Iters)
			}
		}
		if err := mpi.Bcast(world, plan, 0); err != nil {
			return 0, err
		}
	}
	w.turns = plan[0]
	return int(plan[1]), nil
}

// overlapped is what part of the time alone does not come on top of computing,
// in per cent.
func overlapped(alone, compute, total float64) float64 {
	if alone <= 0 {
		return 0
	}
	return 100 * min(max(1-max(0, total-compute)/alone, 0), 1)
}
