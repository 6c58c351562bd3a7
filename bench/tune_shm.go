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

// WaysOptions are the options of TuneWays. They must be equal on both ranks.
type WaysOptions struct {
	// Rounds is the number of rounds in which all protocols take turns, a block of each
	// size; 0 means DefaultWaysRounds.
	Rounds int
	// Both is the longest time that rounds continue beyond Rounds until both states of the
	// machine were seen; 0: they do not.
	Both time.Duration
	// Progress, if not nil, is called on rank 0 now and then.
	Progress func(done, total int)
}

// DefaultWaysRounds is the value for 0 in WaysOptions.
const DefaultWaysRounds = 60

// nearProbe tells which state a machine with a single state is in, in nanoseconds.
const nearProbe = 150

// threshold is a limit to measure: messages below and above it use different protocols.
type threshold struct {
	name  string
	upTo  bool // the first protocol is for shorter messages, else for longer
	none  int  // the limit if the first protocol is never faster
	bytes []int
	loop  func(world *mpi.Comm, bytes int) loop
	// ways are both protocols, as limits that all these lengths are above or below.
	ways [2]func(l *tuning.Thresholds)
	set  func(l *tuning.Thresholds, n int)
	// The loops, the iterations of a block, and the times, by size and protocol.
	loops []loop
	each  [][2]int
	took  [][2][]report.Batch
}

func thresholds() []*threshold {
	latency := func(world *mpi.Comm, bytes int) loop { return prepareLatency(world, nil, bytes) }
	stream := func(world *mpi.Comm, bytes int) loop { return prepareBw(world, nil, bytes) }
	transfers := []int{17 << 10, 20 << 10, 24 << 10, 32 << 10, 40 << 10, 48 << 10, 56 << 10, 64 << 10, 80 << 10, 96 << 10, 128 << 10, 192 << 10, 256 << 10}
	return []*threshold{
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

// use makes this process use one of the two protocols.
func (q *threshold) use(world *mpi.Comm, way int) {
	t := tuning.Default()
	q.ways[way](&t.Near)
	q.ways[way](&t.Far)
	setWays(world, t)
}

func setWays(world *mpi.Comm, t tuning.Table) { world.Core().Comm().Proc.SetWays(t) }

// TuneWays measures, between two ranks of one host, the lengths from which protocols are
// fastest, in each state of the machine that is seen. Blocks of both protocols and all
// lengths take turns, each between two probes. It is collective over world, of two ranks;
// rank 0 gets the table as text for gompirun --shm-table, with the measurements in
// comments. ctx ends it between two rounds. Errors: invalid options, those of
// communication.
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
	list := thresholds()
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

// prepare makes the loops of a threshold and warms each up twice: the first time connects.
func (q *threshold) prepare(world *mpi.Comm) error {
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

func (q *threshold) round(world *mpi.Comm, probe *probe) error {
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

// blocks runs a block of all sizes and both protocols.
func blocks(list []*threshold) (all [][]report.Batch) {
	for _, q := range list {
		for i := range q.took {
			all = append(all, q.took[i][0], q.took[i][1])
		}
	}
	return all
}

func bothSeen(list []*threshold) bool { return report.BothStates(blocks(list)) }

// waysTable returns the results as text.
func waysTable(list []*threshold) string {
	var all []report.Batch
	for _, b := range blocks(list) {
		all = append(all, b...)
	}
	cut := report.Cut(all)
	s := report.SplitStates(all, cut)
	if cut == 0 { // one state: all probes are above
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

// decision is the result for a threshold.
type decision struct {
	limit int
	text  string // the measurements
}

// answer returns the limit that loses least in a state; nil: the state was not seen.
func (q *threshold) answer(cut float64, far bool) *decision {
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

// limit returns the limit with the least loss. usec has times by size and protocol; the
// loss of a size is the factor of its protocol's time over the faster one.
func (q *threshold) limit(usec [][2]float64) int {
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
