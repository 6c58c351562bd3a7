// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"runtime"
	"time"

	"gompi/bench/report"
	"gompi/mpi"
)

// Work of the target of one-sided operations instead of waiting in the library.
const (
	Computing = "computing" // arithmetic: it needs a processor and nothing else
	Streaming = "streaming" // read memory: it needs what others leave of the bandwidth
)

const (
	// streamBytes is the memory that a streaming target reads, more than the
	// caches of a processor hold.
	streamBytes = 256 << 20
	// leastBatch is how long rank 0 works at least between two looks whether the
	// target is done: they must not be seen in the result.
	leastBatch = 50 * time.Microsecond
	// leastOps is how many operations there are at least during one run of the
	// target's loop, unless that would last longer than longestRun.
	leastOps   = 3
	longestRun = 5 * time.Second
	// A loop is run so often in each company, between leastRuns and mostRuns, as
	// the time of a point allows.
	leastRuns, mostRuns = 5, 25
)

// company is the work of rank 0 while the target works.
type company func(n int) (time.Duration, error)

// disturb measures the operations of a loop while the target works without calling the
// library, and how much slower its work is than beside a rank 0 that sleeps. A rank 0 that
// does the same operations on its own memory shows the part of the common memory.
func (l *loop) disturb(world *mpi.Comm, o *Options, r *report.Result) error {
	d := disturber{world: world, work: newWork(world, o.Target), each: 1}
	runs, err := d.calibrate(l.run, o)
	if err != nil {
		return err
	}
	var usec []float64
	var took [3][]float64
	for range runs {
		for k, beside := range []company{nil, l.own, l.run} {
			spent, ops, err := d.phase(beside)
			if err != nil {
				return err
			}
			took[k] = append(took[k], spent.Seconds())
			if k == 2 {
				usec = append(usec, ops...)
			}
		}
	}
	if world.Rank() == 0 {
		r.SetTarget(o.Target, usec, took)
	}
	return nil
}

// disturber runs the target's loop on rank 1, and something beside it on
// rank 0.
type disturber struct {
	world *mpi.Comm
	work  *work
	each  int // operations between two checks of the target
	token [1]int64
}

// phase lets the target work once. Rank 0 gets the duration, and the times of its
// operations that ended before; if none did, that of the first.
func (d *disturber) phase(beside company) (spent time.Duration, usec []float64, err error) {
	if err := d.world.Barrier(); err != nil {
		return 0, nil, err
	}
	if d.world.Rank() != 0 {
		t := time.Now()
		d.work.do()
		d.token[0] = int64(time.Since(t))
		return 0, nil, mpi.Send(d.world, d.token[:], 0, tagData)
	}
	r := mpi.Irecv(d.world, d.token[:], 1, tagData)
	for beside != nil {
		took, err := beside(d.each)
		if err != nil {
			return 0, nil, err
		}
		one := float64(took.Nanoseconds()) / 1e3 / float64(d.each)
		over, _, err := r.Test()
		if err != nil {
			return 0, nil, err
		}
		if !over || len(usec) == 0 {
			usec = append(usec, one)
		}
		if over {
			return time.Duration(d.token[0]), usec, nil
		}
		if took < leastBatch {
			d.each *= 2
		}
	}
	_, err = r.Wait()
	return time.Duration(d.token[0]), nil, err
}

// calibrate sets turns of the target's loop that are long enough, and returns
// how often it is to be run. Rank 0 decides.
func (d *disturber) calibrate(run company, o *Options) (runs int, err error) {
	plan := make([]int64, 1)
	for d.work.turns = 1 << 10; plan[0] == 0; d.work.turns *= 2 {
		spent, ops, err := d.phase(run)
		if err != nil {
			return 0, err
		}
		if enough := spent >= o.Time/leastRuns && len(ops) >= leastOps; enough || spent >= longestRun {
			plan[0] = min(max(int64(o.Time/max(spent, 1)), leastRuns), mostRuns)
		}
		if o.Iters > 0 && plan[0] > 0 {
			plan[0] = int64(o.Iters)
		}
		if err := mpi.Bcast(d.world, plan, 0); err != nil {
			return 0, err
		}
	}
	d.work.turns /= 2
	runtime.GC() // the garbage of the last point is not this one's
	return int(plan[0]), nil
}

// newWork makes the work of a target.
func newWork(world *mpi.Comm, does string) *work {
	w := &work{x: 1}
	if does == Streaming && world.Rank() == 1 {
		w.mem = make([]uint64, streamBytes/8)
		for i := range w.mem {
			w.mem[i] = 1
		}
	}
	return w
}
