// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"runtime"
	"time"

	"gompi/bench/report"
	"gompi/mpi"
)

// Tags of benchmark messages; goroutine k of mbw adds 2k.
const (
	tagData = 1
	tagAck  = 2
)

const (
	// leastBlocks is the number of blocks into which the iterations of a point are divided
	// for timing, if there are so many. There are more if a block would take longer than
	// mostBlock, as the machine changes meanwhile.
	leastBlocks = 200
	mostBlock   = 8 * time.Millisecond
)

// whose says which clock a result comes from.
type whose uint8

const (
	rank0   whose = iota
	senders       // sum of the rates of ranks below P/2
	mean          // mean of all ranks
)

// loop is one rank's part of a benchmark at one size.
type loop struct {
	ops   int // operations of one iteration, by all goroutines of the rank
	whose whose
	work  *work // done inside an iteration; nil: none
	// run runs n iterations and returns their time.
	run func(n int) (time.Duration, error)
	// own runs on the caller's own memory; nil: it is not measured.
	own func(n int) (time.Duration, error)
	// close frees the resources of the loop; may be nil.
	close func() error
}

// timed makes a run of a body whose whole time counts.
func timed(body func(n int) error) func(n int) (time.Duration, error) {
	return func(n int) (time.Duration, error) {
		t := time.Now()
		err := body(n)
		return time.Since(t), err
	}
}

// measure runs the loop on every rank and fills r on rank 0. Each block stands between two
// probes.
func (l *loop) measure(world *mpi.Comm, o *Options, probe *probe, r *report.Result) error {
	iters, took, err := l.warm(world, o)
	if err != nil {
		return err
	}
	blocks, each := split(iters, took)
	usec, probes := make([]float64, blocks), make([]float64, blocks+1)
	runtime.GC() // collects the garbage of the last point
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := world.Barrier(); err != nil {
		return err
	}
	if probes[0], err = probe.nsec(); err != nil {
		return err
	}
	for b := range usec {
		d, err := l.run(each)
		if err != nil {
			return err
		}
		usec[b] = float64(d.Nanoseconds()) / 1e3 / float64(each) / float64(l.ops)
		if probes[b+1], err = probe.nsec(); err != nil {
			return err
		}
	}
	runtime.ReadMemStats(&after)
	if usec, err = l.gather(world, usec); err != nil {
		return err
	}
	if probe != nil {
		for b, t := range usec {
			r.Batches = append(r.Batches, report.Batch{Usec: t, Before: probes[b], After: probes[b+1]})
		}
	}
	r.SetTimes(usec)
	r.Allocs = allocsPer(after.Mallocs-before.Mallocs, blocks*each*l.ops)
	return nil
}

// allocsPer rounds: a few allocations of the runtime in a million operations count as
// none.
func allocsPer(n uint64, ops int) float64 {
	return math.Round(float64(n)/float64(ops)*1000) / 1000
}

// split divides iterations into blocks of equal length; the rest is dropped.
func split(iters int, took time.Duration) (blocks, each int) {
	blocks = min(iters, max(leastBlocks, int(took/mostBlock)))
	return blocks, iters / blocks
}

// warm runs the loop untimed. The ranks agree on the number of iterations and on their
// approximate time.
func (l *loop) warm(world *mpi.Comm, o *Options) (int, time.Duration, error) {
	if err := world.Barrier(); err != nil {
		return 0, 0, err
	}
	if o.Iters > 0 {
		n := min(o.Iters, max(o.Iters/20, 20))
		took, err := l.elapsed(n)
		if err != nil {
			return 0, 0, err
		}
		whole, err := mpi.BcastOne(world, int64(float64(took)*float64(o.Iters)/float64(n)), 0)
		return o.Iters, time.Duration(whole), err
	}
	// Doubling until a twentieth of the time is used. Rank 0 decides; all
	// ranks must make the same number of iterations.
	for n := 1; ; n *= 2 {
		took, err := l.elapsed(n)
		if err != nil {
			return 0, 0, err
		}
		// The faster of two: one may have made a connection, or been interrupted.
		again, err := l.elapsed(n)
		if err != nil {
			return 0, 0, err
		}
		took = min(took, again)
		plan := []int64{int64(fit(n, took, o.Time)), 0}
		plan[1] = int64(float64(took) * float64(plan[0]) / float64(n))
		if err := mpi.Bcast(world, plan, 0); err != nil {
			return 0, 0, err
		}
		if plan[0] > 0 {
			return int(plan[0]), time.Duration(plan[1]), nil
		}
	}
}

// elapsed returns the real time of n iterations.
func (l *loop) elapsed(n int) (time.Duration, error) {
	t := time.Now()
	_, err := l.run(n)
	return time.Since(t), err
}

// fit returns the number of iterations that fit into want if n took the time took; 0 if n
// was too small to tell.
func fit(n int, took, want time.Duration) int {
	if took < want/20 && n < 1<<40 {
		return 0
	}
	est := float64(want) / float64(max(took, 1)) * float64(n)
	return int(min(max(est, 1), 1e12))
}

// gather merges the samples of the ranks. It is collective; the result counts on rank 0.
func (l *loop) gather(world *mpi.Comm, usec []float64) ([]float64, error) {
	if l.whose == rank0 {
		return usec, nil
	}
	size := world.Size()
	if l.whose == senders {
		for i := range usec {
			if world.Rank() < size/2 {
				usec[i] = 1 / max(usec[i], 1e-9)
			} else {
				usec[i] = 0
			}
		}
	}
	all := make([]float64, len(usec))
	if err := mpi.Allreduce(world, usec, all, mpi.Sum); err != nil {
		return nil, err
	}
	for i := range all {
		if l.whose == senders {
			all[i] = 1 / all[i]
		} else {
			all[i] /= float64(size)
		}
	}
	return all, nil
}
