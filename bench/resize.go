// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"gompi/bench/report"
	"gompi/internal/host/cputime"
	"gompi/mpi"
	"gompi/sessions"
)

// ResizeOptions are the options of Resize. They must be equal on all ranks, also on
// newcomers.
type ResizeOptions struct {
	// Start is the size before an addition, or after a removal. The job begins with it, or
	// with the size that Remove needs.
	Start int
	// Deltas are the numbers of ranks to add or remove.
	Deltas []int
	// Remove: ranks leave.
	Remove bool
	// Rounds is the number of measurements of each delta; 0 means DefaultResizeRounds.
	Rounds int
	// Busy: an iteration computes for 10 ms; otherwise it sleeps for 10 ms.
	Busy bool
	// Nonblocking: rank 0 goes on after its request. Otherwise it waits until all
	// newcomers are there, and all others wait in the Barrier.
	Nonblocking bool
	// Transport is the name that results carry; "": as Options.
	Transport string
	// Began is the start of this process; zero: it does not count.
	Began time.Time

	work time.Duration // time of an iteration; 0 means resizeWork
}

const (
	// DefaultResizeRounds is the value for Rounds 0.
	DefaultResizeRounds = 5

	resizeWork  = 10 * time.Millisecond
	resizeEvery = 10 // iterations between two changes
	resizeLater = 5  // barriers timed after the first one of a new communicator
)

// Size returns the number of ranks with which the job must begin.
func (o *ResizeOptions) Size() int {
	if o.Remove && len(o.Deltas) > 0 {
		return o.Start + o.Deltas[0]
	}
	return o.Start
}

func (o *ResizeOptions) validate() error {
	if o.Start < 1 || len(o.Deltas) == 0 || o.Rounds < 0 {
		return fmt.Errorf("bench: resize: start %d, deltas %v, %d rounds", o.Start, o.Deltas, o.Rounds)
	}
	for _, d := range o.Deltas {
		if d < 1 {
			return fmt.Errorf("bench: resize: delta %d is not above 0", d)
		}
	}
	return nil
}

// step is one change of the plan.
type step struct {
	to     int
	delta  int  // of a measured change; 0: the change only prepares the next one
	result bool // the last one of its delta
}

// plan returns all changes, in order.
func (o *ResizeOptions) plan() []step {
	var list []step
	size := o.Size()
	for _, d := range o.Deltas {
		from, to := o.Start, o.Start+d
		if o.Remove {
			from, to = to, from
		}
		for r := range o.Rounds {
			if size != from {
				list = append(list, step{to: from})
			}
			list = append(list, step{to, d, r == o.Rounds-1})
			size = to
		}
	}
	return list
}

// resizer is the state of the measurement on a rank.
type resizer struct {
	o     ResizeOptions
	plan  []step
	comm  *mpi.Comm
	watch *sessions.Watcher
	work  work
	emit  func(report.Result) error

	at       int                 // index in the plan
	asked    *sessions.Operation // rank 0: the request under way
	checkMax time.Duration       // longest Check since the last change
	samples  []report.Resize     // rank 0: samples of this delta
}

// Resize measures changes of the number of ranks. A job iterates (10 ms of work and a
// Barrier). In every tenth iteration rank 0 asks for more or fewer ranks, and all take up
// the change by Check and Commit; docs/results/resize.md describes the times. It is
// collective over world and over newcomers, which call it first. emit is called on rank 0,
// and its error ends the run there. A rank that leaves gets sessions.ErrLeaving. Errors:
// invalid options, a change that fails, those of communication.
func Resize(ctx context.Context, world *mpi.Comm, o ResizeOptions, emit func(report.Result) error) error {
	if o.Rounds == 0 {
		o.Rounds = DefaultResizeRounds
	}
	if o.work == 0 {
		o.work = resizeWork
	}
	if err := o.validate(); err != nil {
		return err
	}
	r := &resizer{o: o, plan: o.plan(), comm: world, emit: emit, work: work{x: 1, idle: !o.Busy, turns: int64(o.work)}}
	c, err := sessions.Joined(ctx)
	if err != nil {
		return err
	}
	first := 0
	if c != nil {
		came := time.Duration(0)
		if !o.Began.IsZero() {
			came = time.Since(o.Began)
		}
		// A newcomer votes at once, and the others do not wait for newcomers.
		if err := r.adopt(ctx, c, time.Now(), 0, came); err != nil {
			return err
		}
		if first, err = c.Iteration(ctx); err != nil {
			return err
		}
		first++
	} else if world.Size() != o.Size() {
		return fmt.Errorf("bench: resize: the job has %d ranks and should begin with %d", world.Size(), o.Size())
	} else if o.Busy {
		if err := r.calibrate(); err != nil {
			return err
		}
	}
	if r.watch, err = sessions.Watch(ctx, "gompi://main", sessions.Options{}); err != nil {
		return err
	}
	for i := first; r.at < len(r.plan); i++ {
		if err := r.iterate(ctx, i); err != nil {
			return err
		}
	}
	return r.watch.Close()
}

func (r *resizer) iterate(ctx context.Context, i int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if r.comm.Rank() == 0 && r.asked == nil && i%resizeEvery == resizeEvery-1 {
		if err := r.ask(ctx); err != nil {
			return err
		}
	}
	r.work.do()
	if err := r.comm.Barrier(); err != nil {
		return err
	}
	if r.o.Transport == "" {
		r.o.Transport = Carrier(r.comm)
	}
	t := time.Now()
	c, err := r.watch.Check(i)
	took := time.Since(t)
	switch {
	case err != nil:
		return err
	case c != nil:
		return r.adopt(ctx, c, t.Add(took), took, 0)
	}
	r.checkMax = max(r.checkMax, took)
	if r.asked != nil && r.asked.State() >= sessions.Refused {
		out, err := r.asked.Wait(ctx)
		return fmt.Errorf("bench: resize to %d ranks: %w", r.plan[r.at].to, errors.Join(err, out.Err))
	}
	return nil
}

// ask submits the next change.
func (r *resizer) ask(ctx context.Context) (err error) {
	r.asked, err = sessions.Submit(ctx, sessions.Request{Kind: sessions.Replace, In: []string{"gompi://main"}, Size: r.plan[r.at].to})
	for err == nil && !r.o.Nonblocking && r.asked.State() < sessions.Ready {
		pause := unix.NsecToTimespec(int64(50 * time.Microsecond))
		_ = unix.Nanosleep(&pause, nil)
	}
	return err
}

// Times that each rank reports of a change, in nanoseconds.
const (
	ofOverhead = iota // time in the Check that returned the change and in Commit; 0 for newcomers
	ofArrival         // time of the call of Commit
	ofReturn          // time of the return of Commit
	ofCheck           // the longest other Check
	ofInit            // newcomers: from the start of the process until here
	ofSize
)

// adopt takes up a change on this rank, and gives rank 0 the times of all ranks.
func (r *resizer) adopt(ctx context.Context, c *sessions.Change, arrived time.Time, inCheck, came time.Duration) error {
	begin := time.Now()
	comm, err := c.Commit(ctx)
	end := time.Now()
	if err != nil {
		return err
	}
	mine := [ofSize]int64{0, arrived.UnixNano(), end.UnixNano(), int64(r.checkMax), int64(came)}
	if c.Role != sessions.Joining {
		mine[ofOverhead] = int64(inCheck + end.Sub(begin))
		if err := r.comm.Free(); err != nil {
			return err
		}
	}
	r.comm, r.checkMax = comm, 0
	barriers := make([]float64, 1+resizeLater)
	for i := range barriers {
		if err := stopwatch(&barriers[i], comm.Barrier); err != nil {
			return err
		}
	}
	all := make([]int64, ofSize*comm.Size())
	if err := mpi.Gather(comm, mine[:], all, 0); err != nil {
		return err
	}
	if comm.Rank() == 0 {
		if err := r.tell(ctx, all, barriers); err != nil {
			return err
		}
	}
	next, err := mpi.BcastOne(comm, [2]int64{int64(r.at) + 1, r.work.turns}, 0)
	r.at, r.work.turns = int(next[0]), next[1]
	return err
}

// tell records rank 0's sample of a change, and emits the result of a delta that is done.
func (r *resizer) tell(ctx context.Context, all []int64, barriers []float64) error {
	out, err := r.asked.Wait(ctx)
	if err := errors.Join(err, out.Err); err != nil {
		return err
	}
	r.asked.Free()
	r.asked = nil
	m := r.plan[r.at]
	if m.delta == 0 {
		return nil
	}
	r.samples = append(r.samples, r.sample(m, out.Times, all, barriers))
	if !m.result {
		return nil
	}
	x := report.Result{Bench: "resize", Transport: r.o.Transport, Ranks: r.o.Start}
	x.SetResize(r.samples)
	r.samples = nil
	return r.emit(x)
}

// sample returns the times of one change.
func (r *resizer) sample(m step, t sessions.Times, all []int64, barriers []float64) report.Resize {
	s := report.Resize{Mode: "add", Delta: m.delta}
	asked := t.Asked.UnixNano()
	firstArrival, lastArrival, lastReturn := int64(1<<62), int64(0), int64(0)
	slowest := []int64(nil)
	var overheads []float64
	for ; len(all) > 0; all = all[ofSize:] {
		a := all[:ofSize]
		lastReturn = max(lastReturn, a[ofReturn])
		s.InitMaxMsec = max(s.InitMaxMsec, msec(a[ofInit]))
		if a[ofOverhead] == 0 {
			continue
		}
		firstArrival, lastArrival = min(firstArrival, a[ofArrival]), max(lastArrival, a[ofArrival])
		overheads = append(overheads, msec(a[ofOverhead]))
		if slowest == nil || a[ofOverhead] > slowest[ofOverhead] {
			slowest = a
		}
		s.CheckMaxUsec = max(s.CheckMaxUsec, 1e3*msec(a[ofCheck]))
	}
	end := lastReturn - asked
	if r.o.Remove {
		s.Mode = "sub"
		s.GoneMsec = msec(int64(t.Gone))
		end = max(end, int64(t.Gone))
	}
	s.TotalMsec = msec(end)
	s.WaitMsec = msec(max(0, firstArrival-asked-int64(t.Ready)))
	s.InitiationMsec = msec(int64(t.Ordered))
	s.AppOverheadMsec = msec(slowest[ofOverhead])
	s.SkewMsec = msec(max(0, lastArrival-slowest[ofArrival]))
	s.AppOverheadMedianMsec = report.Median(overheads)
	s.ReadyMsec = msec(int64(t.Ready))
	s.FirstBarrierMsec = barriers[0] / 1e3
	s.LaterBarrierMsec = report.Median(barriers[1:]) / 1e3
	return s
}

func msec(ns int64) float64 { return float64(ns) / 1e6 }

// calibrate finds the amount of computing that takes rank 0 the time of an iteration,
// whatever else runs; all ranks compute as much.
func (r *resizer) calibrate() (err error) {
	if r.comm.Rank() == 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		begin := cputime.Thread()
		r.work.turns = 1 << 22
		r.work.do()
		r.work.turns = int64(float64(r.work.turns) * float64(r.o.work) / float64(max(1, cputime.Thread()-begin)))
	}
	r.work.turns, err = mpi.BcastOne(r.comm, r.work.turns, 0)
	return err
}
