// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"gompi/bench/report"
	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/mpi"
)

// TuneOptions are the options of Tune. They must be equal on all ranks.
type TuneOptions struct {
	// Ops are names of collectives; nil means all.
	Ops []string
	// Bytes are sizes as the benchmarks count them; nil means each one's own
	// list. A collective without sizes ignores them.
	Bytes []int
	// Time of one algorithm at one size; 0 means DefaultTuneTime.
	Time time.Duration
	// Rounds in which the algorithms take turns; 0 means DefaultTuneRounds.
	Rounds int
	// Progress, if not nil, is called on rank 0 before each size of each
	// collective.
	Progress func(op string, bytes, done, total int)
}

// Values for zero in TuneOptions.
const (
	DefaultTuneTime   = 100 * time.Millisecond
	DefaultTuneRounds = 9
)

// hopeless is the factor over the best time from which an algorithm is dropped after the
// first round.
const hopeless = 4

// Tuned has the times of the algorithms of one collective.
type Tuned struct {
	Op     collectives.Op
	Ranks  int
	Rounds int
	Points []TunedPoint // by size
}

// TunedPoint is one size.
type TunedPoint struct {
	Size  int           // as the benchmark counts
	Bytes int64         // as rules count; 0 if lengths do not matter
	Times []TunedTiming // fastest first
}

// TunedTiming is the median of one algorithm; of a hopeless one, its only round.
type TunedTiming struct {
	Alg  *collectives.Algorithm
	Usec float64
}

// tunable is a collective with the algorithms to compare.
type tunable struct {
	Benchmark
	op collectives.Op
}

// tunables finds collectives by name; nil means all that have more than one algorithm.
func tunables(names []string) ([]tunable, error) {
	if names == nil {
		algs := map[string]int{}
		for _, g := range slices.Concat(collectives.Shared(), selection.All()) {
			if !g.Inter && !g.TwoLevel {
				algs[g.Op.String()]++
			}
		}
		for _, b := range collectiveBenchmarks() {
			if algs[b.Name] > 1 {
				names = append(names, b.Name)
			}
		}
	}
	var list []tunable
	for _, name := range names {
		b, ok := Find(name)
		op, err := collectives.ParseOp(name)
		if !ok || err != nil {
			return nil, fmt.Errorf("bench: nothing to tune is called %q", name)
		}
		list = append(list, tunable{b, op})
	}
	return list, nil
}

func (o *TuneOptions) validate(list []tunable, ranks int) error {
	if o.Time == 0 {
		o.Time = DefaultTuneTime
	}
	if o.Rounds == 0 {
		o.Rounds = DefaultTuneRounds
	}
	if o.Time < 0 || o.Rounds < 0 || o.Rounds > leastBlocks {
		return fmt.Errorf("bench: %v an algorithm, %d rounds: must be positive, at most %d rounds", o.Time, o.Rounds, leastBlocks)
	}
	for i := range list {
		x := Options{Bytes: o.Bytes}
		if err := x.validate(&list[i].Benchmark, ranks); err != nil {
			return err
		}
		list[i].Bytes = slices.Compact(slices.Sorted(slices.Values(x.Bytes)))
	}
	return nil
}

// Tune measures every algorithm of the collectives on the ranks of world. It is
// collective; rank 0 gets the results, also those from before an error. ctx ends it
// between two sizes.
func Tune(ctx context.Context, world *mpi.Comm, o TuneOptions) ([]Tuned, error) {
	list, err := tunables(o.Ops)
	if err == nil {
		err = o.validate(list, world.Size())
	}
	if err != nil {
		return nil, err
	}
	c, err := world.Dup()
	if err != nil {
		return nil, err
	}
	defer c.Free()
	done, total := 0, 0
	for i := range list {
		total += len(list[i].Bytes)
	}
	var all []Tuned
	for i := range list {
		b := &list[i]
		t := Tuned{Op: b.op, Ranks: world.Size(), Rounds: o.Rounds}
		for _, n := range b.Bytes {
			if ctx.Err() != nil {
				return all, context.Cause(ctx)
			}
			if o.Progress != nil && world.Rank() == 0 {
				o.Progress(b.Name, n, done, total)
			}
			done++
			p, err := b.compare(world, c, &o, n)
			if err != nil {
				return all, fmt.Errorf("%s at %d bytes: %w", b.Name, n, err)
			}
			t.Points = append(t.Points, p)
		}
		all = append(all, t)
	}
	return all, nil
}

// args returns the arguments of the benchmark's call for the selection of algorithms.
func (b *tunable) args(c *mpi.Comm, bytes int) (a collectives.Args, elemBytes int) {
	elemBytes = b.unit()
	a = c.Core().Comm().SelectionArgs(b.op, int64(elemBytes))
	if b.shape&manyToAll != 0 {
		bytes = (bytes + a.Size - 1) / a.Size
	}
	a.Count = int64(bytes / elemBytes)
	if b.op == collectives.OpAllgatherv || b.op == collectives.OpReduceScatter {
		a.Counts = slices.Repeat([]int64{a.Count}, a.Size)
	}
	return a, elemBytes
}

// contender is one algorithm at one size.
type contender struct {
	alg   *collectives.Algorithm
	table *selection.Table
	each  int // iterations of a round
	usec  []float64
}

// compare measures the algorithms at one size, in turn, on c; the ranks agree
// on how to go on through world.
func (b *tunable) compare(world, c *mpi.Comm, o *TuneOptions, bytes int) (TunedPoint, error) {
	a, elemBytes := b.args(c, bytes)
	p := TunedPoint{Size: bytes, Bytes: collectives.RuleBytes(&a, elemBytes)}
	var list []*contender
	for _, g := range slices.Concat(collectives.Shared(), selection.All()) {
		if g.Op != b.op || !g.Admits(&a, true) {
			continue
		}
		t := selection.DefaultTable()
		if err := t.Force(b.op, g.Name); err != nil {
			return p, err
		}
		list = append(list, &contender{alg: g, table: t})
	}
	defer c.Core().Comm().SetTable(nil)
	l := b.prepare(c, &Options{}, bytes)
	slice := Options{Time: max(o.Time/time.Duration(o.Rounds), 1)}
	for _, x := range list {
		var err error
		c.Core().Comm().SetTable(x.table)
		if x.each, _, err = l.warm(world, &slice); err != nil {
			return p, err
		}
	}
	runtime.GC()
	left := list
	for r := range o.Rounds {
		for _, x := range left {
			if err := x.round(world, c, &l); err != nil {
				return p, err
			}
		}
		if r == 0 {
			var err error
			if left, err = hopeful(world, &l, list); err != nil {
				return p, err
			}
		}
	}
	for _, x := range list {
		usec, err := l.gather(world, x.usec)
		if err != nil {
			return p, err
		}
		p.Times = append(p.Times, TunedTiming{x.alg, report.Median(usec)})
	}
	slices.SortStableFunc(p.Times, func(x, y TunedTiming) int { return cmp.Compare(x.Usec, y.Usec) })
	return p, nil
}

// round measures the time of one round.
func (x *contender) round(world, c *mpi.Comm, l *loop) error {
	c.Core().Comm().SetTable(x.table)
	if err := world.Barrier(); err != nil {
		return err
	}
	d, err := l.run(x.each)
	x.usec = append(x.usec, float64(d.Nanoseconds())/1e3/float64(x.each))
	return err
}

// hopeful drops hopeless algorithms after the first round.
func hopeful(world *mpi.Comm, l *loop, list []*contender) ([]*contender, error) {
	usec := make([]float64, len(list))
	for i, x := range list {
		usec[i] = x.usec[0]
	}
	usec, err := l.gather(world, usec)
	if err != nil {
		return nil, err
	}
	if err := mpi.Bcast(world, usec, 0); err != nil {
		return nil, err
	}
	best := slices.Min(usec)
	var left []*contender
	for i, x := range list {
		if usec[i] <= hopeless*best {
			left = append(left, x)
		}
	}
	return left, nil
}
