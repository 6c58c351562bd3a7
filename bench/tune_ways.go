// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"

	"gompi/bench/report"
	"gompi/mpi"
	"gompi/transport/tuning"
)

// WaysOptions say how TuneWays measures. They must be equal on both ranks.
type WaysOptions struct {
	// Rounds in which all ways take turns, a block of each size; 0 means DefaultWaysRounds.
	Rounds int
	// Both: beyond Rounds they go on until all have been seen in both states of the machine,
	// for as long as this at most; 0: they do not.
	Both time.Duration
	// Progress, if not nil, is called on rank 0 now and then.
	Progress func(done, total int)
}

// DefaultWaysRounds is what 0 in WaysOptions means.
const DefaultWaysRounds = 60

// nearProbe tells which state a machine is in that has one only, in nanoseconds.
const nearProbe = 150

// question is which of two ways messages of some lengths should go.
type question struct {
	name  string
	upTo  bool // the first way is for shorter messages, else for longer
	none  int  // the limit if it is for none of these
	bytes []int
	loop  func(world *mpi.Comm, bytes int) loop
	// ways are both, as limits that all these lengths are beyond or within.
	ways [2]func(l *tuning.Thresholds)
	set  func(l *tuning.Thresholds, n int)
	// The loops, how many iterations a block has, and what they took, by size and way.
	loops []loop
	each  [][2]int
	took  [][2][]report.Batch
}

func questions() []*question {
	latency := func(world *mpi.Comm, bytes int) loop { return prepareLatency(world, nil, bytes) }
	stream := func(world *mpi.Comm, bytes int) loop { return prepareBw(world, nil, bytes) }
	transfers := []int{17 << 10, 20 << 10, 24 << 10, 32 << 10, 40 << 10, 48 << 10, 56 << 10, 64 << 10, 80 << 10, 96 << 10, 128 << 10, 192 << 10, 256 << 10}
	return []*question{
		{name: "answer", bytes: []int{64, 128, 256, 384, 512, 768, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 12 << 10, 16 << 10}, loop: latency,
			ways: [2]func(l *tuning.Thresholds){func(l *tuning.Thresholds) { l.Answer = 1 }, func(l *tuning.Thresholds) { l.Answer = 0 }},
			set:  func(l *tuning.Thresholds, n int) { l.Answer = n }},
		{name: "stream", bytes: []int{128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 12 << 10}, loop: stream,
			ways: [2]func(l *tuning.Thresholds){func(l *tuning.Thresholds) { l.Stream = 1 }, func(l *tuning.Thresholds) { l.Stream = 0 }},
			set:  func(l *tuning.Thresholds, n int) { l.Stream = n }},
		{name: "push", upTo: true, bytes: transfers, loop: latency,
			ways: [2]func(l *tuning.Thresholds){func(l *tuning.Thresholds) { l.Push = tuning.MaxThreshold }, func(l *tuning.Thresholds) { l.Push = 0 }},
			set:  func(l *tuning.Thresholds, n int) { l.Push = n }},
		{name: "alone", upTo: true, none: tuning.Default().Near.Alone, bytes: transfers, loop: latency,
			ways: [2]func(l *tuning.Thresholds){func(l *tuning.Thresholds) { l.Push, l.Alone = 0, tuning.MaxThreshold }, func(l *tuning.Thresholds) { l.Push, l.Alone = 0, 0 }},
			set:  func(l *tuning.Thresholds, n int) { l.Alone = n }},
	}
}

// use makes this process go one of the two ways.
func (q *question) use(world *mpi.Comm, way int) {
	t := tuning.Default()
	q.ways[way](&t.Near)
	q.ways[way](&t.Far)
	setWays(world, t)
}

func setWays(world *mpi.Comm, t tuning.Table) { world.Core().Comm().Proc.SetWays(t) }

// TuneWays measures, between two ranks of one host, which way messages of which length go
// fastest, in each state of the machine that is seen: blocks of both ways and all lengths in
// turn, each between two probes. It is collective over world, of two ranks; rank 0 gets the
// table as text for gompirun --shm-table, with what was measured in comments. ctx ends it
// between two rounds. Errors: options that cannot be, those of communication.
func TuneWays(ctx context.Context, world *mpi.Comm, o WaysOptions) (string, error) {
	if o.Rounds == 0 {
		o.Rounds = DefaultWaysRounds
	}
	switch {
	case world.Size() != 2:
		return "", fmt.Errorf("bench: ways are measured between 2 ranks, not %d", world.Size())
	case o.Rounds < 0 || o.Both < 0:
		return "", fmt.Errorf("bench: %d rounds, both states for %v: must be positive", o.Rounds, o.Both)
	}
	probe, err := newProbe(world)
	if err == nil && probe == nil {
		err = errors.New("bench: the ranks share no memory for a probe")
	}
	if err == nil && Carrier(world) != "shm" {
		err = fmt.Errorf("bench: ranks use %s between them; ways are those of shm", Carrier(world))
	}
	if err != nil {
		return "", err
	}
	defer probe.close()
	defer setWays(world, tuning.Default())
	list := questions()
	for _, q := range list {
		if err := q.prepare(world); err != nil {
			return "", err
		}
	}
	runtime.GC()
	t := turns{rounds: o.Rounds, both: o.Both, seen: func() bool { return bothSeen(list) }, progress: o.Progress, every: 1}
	err = t.run(ctx, world, func() error {
		for _, q := range list {
			if err := q.round(world, probe); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if world.Rank() != 0 {
		return "", context.Cause(ctx)
	}
	return waysTable(list), context.Cause(ctx)
}

// prepare makes the loops of a question, twice warm: the first time connects.
func (q *question) prepare(world *mpi.Comm) error {
	q.loops, q.each, q.took = make([]loop, len(q.bytes)), make([][2]int, len(q.bytes)), make([][2][]report.Batch, len(q.bytes))
	for i, n := range q.bytes {
		q.loops[i] = q.loop(world, n)
		for range 2 {
			for way := range q.ways {
				q.use(world, way)
				var err error
				if q.each[i][way], _, err = q.loops[i].warm(world, &Options{Time: turnBlock}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (q *question) round(world *mpi.Comm, probe *probe) error {
	before, err := probe.nsec()
	if err != nil {
		return err
	}
	for i := range q.loops {
		for way := range q.ways {
			q.use(world, way)
			b, err := probe.block(&q.loops[i], q.each[i][way], &before)
			if err != nil {
				return err
			}
			q.took[i][way] = append(q.took[i][way], b)
		}
	}
	return nil
}

// blocks are those of all sizes, both ways.
func blocks(list []*question) (all [][]report.Batch) {
	for _, q := range list {
		for i := range q.took {
			all = append(all, q.took[i][0], q.took[i][1])
		}
	}
	return all
}

func bothSeen(list []*question) bool { return report.BothStates(blocks(list)) }

// waysTable is what was measured, as text.
func waysTable(list []*question) string {
	var all []report.Batch
	for _, b := range blocks(list) {
		all = append(all, b...)
	}
	cut := report.Cut(all)
	s := report.SplitStates(all, cut)
	if cut == 0 { // one state, and all are above
		cut = math.Inf(1)
		if s.ProbeFar > nearProbe {
			cut = 0
		}
		s = report.SplitStates(all, cut)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# How messages of which length go inside a host: gompirun --shm-table FILE.\n# gompibench tune shm; us of both ways (the limit's, the other's) by length.\n")
	for _, d := range []struct {
		name    string
		probe   float64
		batches int
	}{{"near", s.ProbeNear, s.BatchesNear}, {"far", s.ProbeFar, s.BatchesFar}} {
		if d.batches == 0 {
			fmt.Fprintf(&b, "# %s: not seen\n", d.name)
			continue
		}
		fmt.Fprintf(&b, "# %s: a line goes there and back in %.0f ns\n", d.name, d.probe)
		for _, q := range list {
			a := q.answer(cut, d.name == "far")
			if a == nil {
				fmt.Fprintf(&b, "# %s %s: not seen\n", d.name, q.name)
				continue
			}
			fmt.Fprintf(&b, "%s %s %d # %s\n", d.name, q.name, a.limit, a.text)
		}
	}
	return b.String()
}

// decision is the answer to a question.
type decision struct {
	limit int
	text  string // what was measured
}

// answer is the limit with which messages lose least in a state; nil: it was not seen.
func (q *question) answer(cut float64, far bool) *decision {
	var usec [][2]float64
	var text []string
	for i, n := range q.bytes {
		var t [2]float64
		for way := range t {
			s := report.SplitStates(q.took[i][way], cut)
			if t[way] = s.UsecNear; far {
				t[way] = s.UsecFar
			}
		}
		if t[0] == 0 || t[1] == 0 {
			return nil
		}
		usec = append(usec, t)
		text = append(text, fmt.Sprintf("%s %.3g %.3g", report.Bytes(float64(n)), t[0], t[1]))
	}
	return &decision{q.limit(usec), strings.Join(text, ", ")}
}

// limit is the one of a question with which times, by size and way, are least, by the factors
// that they are above the better way's.
func (q *question) limit(usec [][2]float64) int {
	best, least := 0, math.Inf(1)
	for k := range len(usec) + 1 { // sizes before k and from k on go different ways
		loss := 0.0
		for i, t := range usec {
			way := 0
			if i < k != q.upTo {
				way = 1
			}
			loss += math.Log(t[way] / min(t[0], t[1]))
		}
		if loss < least {
			best, least = k, loss
		}
	}
	switch {
	case q.upTo && best == 0:
		return q.none
	case !q.upTo && best == len(usec):
		return 0
	case q.upTo:
		return q.bytes[best-1]
	}
	return q.bytes[best]
}
