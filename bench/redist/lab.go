// SPDX-License-Identifier: Apache-2.0

package redist

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"gompi/bench"
	"gompi/bench/report"
	"gompi/bench/stages"
	"gompi/internal/resize/layout"
	"gompi/mam"
	"gompi/mpi"
)

const (
	settling = 2                // iterations with new ranks that are not timed
	timed    = 10               // iterations that are, before a change and after it
	patience = 60 * time.Second // for a change
)

// lab is what a rank knows of the measurement.
type lab struct {
	o     Options
	ctx   context.Context
	m     *mam.Module
	x     []uint64
	array bool // x is an array in memory of the hosts, as INPLACE has it
	clock clock
	came  bool // this process, by the change that is being measured

	// An iteration, over a communicator.
	iteration *stages.Emulation
	over      *mpi.Comm
	costs     []float64 // rank 0: of its stages

	// Rank 0 alone:
	tests      []*test
	at         int // how many changes are done, or left out
	iterations []interval
	before     float64 // time of an iteration
}

// test is a variant and what was measured of it.
type test struct {
	Variant
	as     string // by what it really went; "": that is not known yet
	out    bool   // it is not measured any more
	sample []report.Redist
}

// Run measures redistributions of data between o.From and o.To ranks by each variant, in
// turns; emit gets a result of each in the end, of what really went under the name of
// that. A variant that package mam refuses, or for which it does another one that was
// measured before, is left out, and noted. It is collective over world, which has o.From
// ranks, and over those that come, which call it as their first; emit is called on rank 0,
// and its error ends the run there. A rank that goes gets mpi.ErrLeaving. Errors: options
// that cannot be, data that is not what it was, more bytes than need to move, a change
// that does not happen, those of communication.
func Run(ctx context.Context, world *mpi.Comm, o Options, emit func(report.Result) error) (err error) {
	if err := o.validate(); err != nil {
		return err
	}
	l := &lab{o: o, ctx: ctx}
	if l.clock, err = newClock(); err != nil {
		return err
	}
	var role mam.Role
	if l.m, role, err = mam.Init(ctx, world, way(Variant{mam.COL, mam.Blocking}), nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.m.Finalize()) }()
	if role == mam.Source {
		if world.Size() != o.From {
			return fmt.Errorf("redist: the job has %d ranks and should begin with %d", world.Size(), o.From)
		}
	}
	l.came = role == mam.Target
	if err := l.register(); err != nil {
		return err
	}
	if role == mam.Source {
		if err := l.emulate(); err != nil {
			return err
		}
		if err := l.fit(); err != nil {
			return err
		}
		for _, v := range o.Variants {
			l.tests = append(l.tests, &test{Variant: v})
		}
	}
	if l.came && l.m.Comm().Size() == o.From {
		if err := l.check(); err != nil { // with those who come from back
			return err
		}
	}
	for {
		over, err := l.turn()
		if err != nil {
			return err
		}
		if over {
			return l.tell(emit)
		}
	}
}

// way is the configuration of a variant.
func way(v Variant) mam.Config {
	return mam.Config{Process: mam.Merge, Method: v.Method, Strategy: v.Strategy}
}

// turn is one change, forth or back.
func (l *lab) turn() (over bool, err error) {
	if l.m.Comm().Size() == l.o.To {
		if err := l.arrived(); err != nil {
			return false, err
		}
		return false, l.back()
	}
	next, err := l.next()
	if next < 0 || err != nil {
		return true, err
	}
	return false, l.forth(next)
}

// test is which variant has a turn. Each round has an order of its own: what new memory
// takes depends on what was before.
func (l *lab) test(turn int) int {
	n := len(l.tests)
	return rand.New(rand.NewPCG(uint64(turn/n), uint64(n))).Perm(n)[turn%n]
}

// next is the variant that is to be measured now; below 0: that was all.
func (l *lab) next() (int, error) {
	c, next := l.m.Comm(), -1
	if c.Rank() == 0 {
		for n := len(l.tests) * l.o.Rounds; l.at < n; l.at++ {
			if i := l.test(l.at); !l.tests[i].out {
				t := l.tests[i]
				next = i
				if l.o.Progress != nil {
					l.o.Progress(l.at, n, fmt.Sprintf("round %d of %d, %v", l.at/len(l.tests)+1, l.o.Rounds, t.Variant))
				}
				l.at++
				break
			}
		}
	}
	return mpi.BcastOne(c, next, 0)
}

// forth makes the change that is measured.
func (l *lab) forth(next int) error {
	v := l.o.Variants[next]
	if err := l.m.SetConfig(way(v)); errors.Is(err, mpi.ErrArg) && !errors.Is(err, mam.ErrChanging) {
		l.leaveOut(next, err.Error())
		return nil
	} else if err != nil {
		return err
	}
	if err := l.suit(); err != nil {
		return err
	}
	if err := l.calibrated(); err != nil {
		return err
	}
	l.iterations = l.iterations[:0]
	return l.change(l.o.To, l.iterate)
}

// calibrated measures an iteration, which has the length that was asked for also where the
// machine is not as fast as at the beginning any more. Collective.
func (l *lab) calibrated() (err error) {
	const near = 1.25
	if l.before, err = l.iterationNow(); err != nil {
		return err
	}
	by := l.before / float64(l.o.Iteration)
	far, err := mpi.BcastOne(l.m.Comm(), by > near || by < 1/near, 0)
	if err != nil || !far {
		return err
	}
	if err = l.fit(); errors.Is(err, stages.ErrFit) {
		return nil // the result says how long it took
	} else if err != nil {
		return err
	}
	l.before, err = l.iterationNow()
	return err
}

// fit makes an iteration take its time on the ranks that there are. Collective.
func (l *lab) fit() error {
	if _, err := l.iteration.Fit(l.o.Iteration); err != nil {
		return fmt.Errorf("redist: %w", err)
	}
	l.costs = l.iteration.Costs()
	return nil
}

// iterationNow is how long an iteration takes, in nanoseconds. Collective.
func (l *lab) iterationNow() (float64, error) {
	if err := l.emulate(); err != nil {
		return 0, err
	}
	took := make([]float64, timed)
	for i := range settling + timed {
		start := time.Now()
		if err := l.iterate(); err != nil {
			return 0, err
		}
		if state, err := l.m.Checkpoint(mam.Check); err != nil {
			return 0, err
		} else if state == mam.Completed {
			return 0, errors.New("redist: somebody else has changed the number of ranks")
		}
		if i >= settling {
			took[i-settling] = float64(time.Since(start))
		}
	}
	if l.o.Transport == "" {
		l.o.Transport = bench.Carrier(l.m.Comm())
	}
	return report.Median(took), nil
}

// vectorShare is the data by the vector of the emulated CG, in bytes: in the study 64 GB by
// 33,176,880.
const vectorShare = 1930

// emulate makes the iteration over the ranks that there are: as much of it on each as is
// its share. Collective.
func (l *lab) emulate() (err error) {
	c := l.m.Comm()
	if l.over == c {
		return nil
	}
	list := stages.CG(l.o.Iteration.Seconds(), max(8, int(l.o.Bytes/vectorShare)&^7))
	factor := float64(l.o.From) / float64(c.Size())
	l.iteration, err = stages.New(c, list, stages.Options{Factor: factor, Costs: l.costs})
	l.over = c
	return err
}

// iterate is one iteration. Collective.
func (l *lab) iterate() error {
	_, err := l.iteration.Iterate(false, nil)
	return err
}

// change asks for so many ranks, and iterates until there are.
func (l *lab) change(ranks int, body func() error) error {
	rank := l.m.Comm().Rank()
	if rank == 0 {
		if err := l.m.SetTarget(ranks); err != nil {
			return err
		}
	}
	l.came = false
	for deadline := time.Now().Add(patience); ; {
		if l.ctx.Err() != nil {
			return context.Cause(l.ctx)
		}
		start := time.Now()
		if err := body(); err != nil {
			return err
		}
		end := time.Now()
		state, err := l.m.Checkpoint(mam.Check)
		switch {
		case err != nil:
			return err
		case state == mam.Completed && l.m.Comm().Size() != ranks:
			return fmt.Errorf("redist: there are %d ranks, %d were asked for", l.m.Comm().Size(), ranks)
		case state != mam.Completed:
			end = time.Now()
		}
		if rank == 0 {
			l.iterations = append(l.iterations, interval{l.clock.of(start), l.clock.of(end)})
		}
		if state == mam.Completed {
			return nil
		}
		if end.After(deadline) {
			return fmt.Errorf("redist: no change to %d ranks after %v", ranks, patience)
		}
	}
}

// arrived takes the change that was measured apart. Collective over the new ranks.
func (l *lab) arrived() error {
	c := l.m.Comm()
	times := l.m.Times()
	if c.Rank() == 0 && l.tests == nil {
		return errors.New("redist: the first rank has not been there before")
	}
	mine, err := encode(l.clock, times, l.came)
	if err != nil {
		return err
	}
	each, err := mpi.AllreduceOne(c, len(mine), mpi.Max)
	if err != nil {
		return err
	}
	mine = append(mine, make([]int64, each-len(mine))...)
	all := make([]int64, each*c.Size())
	if err := mpi.Gather(c, mine, all, 0); err != nil {
		return err
	}
	after, err := l.iterationNow()
	if err != nil {
		return err
	}
	if err := l.check(); err != nil {
		return err
	}
	if c.Rank() != 0 {
		return nil
	}
	parts, err := decode(all, each)
	if err != nil {
		return err
	}
	return l.note(Variant{times.Method, times.Strategy}, parts, after)
}

// back leads to the ranks of the beginning, and to memory that is not there yet.
func (l *lab) back() error {
	debug.FreeOSMemory()
	way := way(Variant{mam.COL, mam.Blocking})
	if l.array {
		way.Method = mam.InPlace
	}
	if err := l.m.SetConfig(way); err != nil {
		return err
	}
	c := l.m.Comm()
	if err := l.change(l.o.From, c.Barrier); err != nil {
		return err
	}
	debug.FreeOSMemory()
	return l.check()
}

// note keeps what a change has taken. Rank 0.
func (l *lab) note(went Variant, parts []part, after float64) error {
	last := l.test(l.at - 1)
	t := l.tests[last]
	if t.as == "" {
		t.as = went.String()
		for i, other := range l.tests {
			if i != last && other.as == t.as {
				l.leaveOut(last, "it goes as "+t.as+", which is measured")
				return nil
			}
		}
		if t.as != t.Variant.String() && l.o.Note != nil {
			l.o.Note(fmt.Sprintf("%v goes as %s", t.Variant, t.as))
		}
	} else if t.as != went.String() {
		return fmt.Errorf("redist: %v went as %s, and now as %v", t.Variant, t.as, went)
	}
	took, err := takes(parts, went.Method >= mam.Pull)
	if err != nil {
		return fmt.Errorf("%w, by %v", err, went)
	}
	s := report.Redist{
		From: l.o.From, To: l.o.To, Method: went.Method.String(), Strategy: went.Strategy.String(),
		Msec: msec(took.warm + took.touch), WarmMsec: msec(took.warm), TouchMsec: msec(took.touch),
		FromIterMsec: l.before / 1e6, ToIterMsec: after / 1e6, LeastBytes: l.least(),
	}
	for _, p := range parts {
		s.MovedBytes += p.bytes
	}
	if s.MovedBytes > s.LeastBytes {
		return fmt.Errorf("redist: %v has moved %d bytes, %d had to", went, s.MovedBytes, s.LeastBytes)
	}
	if s.Background() {
		n, each := overlapped(l.iterations, took.from, took.to)
		if s.Iterations = n; n > 0 {
			s.Omega = each / l.before
		}
	}
	t.sample = append(t.sample, s)
	return nil
}

func msec(nsec int64) float64 { return float64(nsec) / 1e6 }

// leaveOut ends the measurement of a variant. Local; it counts on rank 0.
func (l *lab) leaveOut(test int, why string) {
	if l.tests == nil || l.m.Comm().Rank() != 0 {
		return
	}
	l.tests[test].out = true
	if l.o.Note != nil {
		l.o.Note(fmt.Sprintf("%v is left out: %s", l.tests[test].Variant, why))
	}
}

// tell gives the results. Rank 0 has them.
func (l *lab) tell(emit func(report.Result) error) error {
	if l.m.Comm().Rank() != 0 {
		return nil
	}
	var all []report.Result
	for _, t := range l.tests {
		if len(t.sample) == 0 {
			continue
		}
		r := report.Result{Bench: "redist", Transport: l.o.Transport, Ranks: l.o.From, Bytes: int64(l.o.elems()) * elemBytes}
		r.SetRedist(t.sample)
		r.Redist.MiB = float64(r.Bytes) / (1 << 20)
		all = append(all, r)
	}
	report.SetRedistTotals(all)
	for _, r := range all {
		if err := emit(r); err != nil {
			return err
		}
	}
	return nil
}

// least is how many bytes have to move.
func (l *lab) least() int64 {
	rule := layout.Layout{Kind: layout.Block, N: int64(l.o.elems())}
	old, err := rule.Over(l.o.From)
	if err != nil {
		return 0
	}
	next, err := rule.Over(l.o.To)
	if err != nil {
		return 0
	}
	stay := make([]int, min(l.o.From, l.o.To))
	for i := range stay {
		stay[i] = i
	}
	return layout.Moved(old, next, stay) * elemBytes
}
