// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"gompi/bench/report"
	"gompi/mpi"
)

// CurveOptions are the options of Curve. They must be equal on both ranks.
type CurveOptions struct {
	// Bytes are the sizes to measure; nil means CurveBytes.
	Bytes []int
	// Rounds in which the sizes take turns, a block of each; 0 means DefaultCurveRounds.
	Rounds int
	// Both is the longest time that rounds continue beyond Rounds until each size has
	// report.CurveBatches blocks in both states of the machine; 0: they do not.
	Both time.Duration
	// Batches: results carry their blocks.
	Batches bool
	// Transport is the name that results carry; "": as Options.
	Transport string
	// Progress, if not nil, is called on rank 0 now and then.
	Progress func(done, total int)
}

// DefaultCurveRounds is the value for 0 in CurveOptions.
const DefaultCurveRounds = 100

// CurveBytes are the sizes of a curve from 1 byte to 4 MiB: several for each power of two,
// and more around the limits of protocols.
func CurveBytes() []int {
	bytes := []int{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 21, 24, 25, 28, 32}
	for at := 32; at < 4<<20; at *= 2 {
		for _, eighths := range []int{10, 12, 14, 16} {
			bytes = append(bytes, at/8*eighths)
		}
	}
	for at := 1 << 10; at <= 64<<10; at *= 2 {
		bytes = append(bytes, at+8)
	}
	slices.Sort(bytes)
	return bytes
}

func (o *CurveOptions) validate(ranks int) error {
	if o.Bytes == nil {
		o.Bytes = CurveBytes()
	}
	o.Bytes = slices.Compact(slices.Sorted(slices.Values(o.Bytes)))
	if o.Rounds == 0 {
		o.Rounds = DefaultCurveRounds
	}
	switch {
	case ranks != 2:
		return fmt.Errorf("bench: curve needs exactly 2 ranks, not %d", ranks)
	case o.Rounds < 0 || o.Both < 0:
		return fmt.Errorf("bench: curve: %d rounds, both states for %v: must be positive", o.Rounds, o.Both)
	case o.Bytes[0] < 0 || o.Bytes[len(o.Bytes)-1] > MaxBytes:
		return fmt.Errorf("bench: curve: sizes from %d to %d bytes, must be 0 to %d", o.Bytes[0], o.Bytes[len(o.Bytes)-1], MaxBytes)
	}
	return nil
}

// Curve measures the time of a message from one rank to the other over its size, by
// ping-pong. Blocks of all sizes take turns, each between two probes, so that all sizes
// see the same machine. It is collective over world, of two ranks. Rank 0 gets the results
// by size, whose Curve tells where the time falls. ctx ends it between two rounds. Errors:
// invalid options, those of communication.
func Curve(ctx context.Context, world *mpi.Comm, o CurveOptions) ([]report.Result, error) {
	if err := o.validate(world.Size()); err != nil {
		return nil, err
	}
	probe, err := newProbe(world)
	if err != nil {
		return nil, err
	}
	defer probe.close()
	most := o.Bytes[len(o.Bytes)-1]
	out, in := make([]byte, most), make([]byte, most)
	loops, each := make([]loop, len(o.Bytes)), make([]int, len(o.Bytes))
	for i, n := range o.Bytes {
		loops[i] = pingPong(world, out[:n], in[:n])
	}
	// Twice: the first sizes of the first pass would see a job that has just begun.
	for range 2 {
		for i := range loops {
			if each[i], _, err = loops[i].warm(world, &Options{Time: turnBlock}); err != nil {
				return nil, err
			}
		}
	}
	runtime.GC()
	batches := make([][]report.Batch, len(loops))
	t := turns{rounds: o.Rounds, both: o.Both, seen: func() bool { return report.BothStates(batches) }, progress: o.Progress, every: turnsLook}
	err = t.run(ctx, world, func() error {
		before, err := probe.nsec()
		for i := 0; i < len(loops) && err == nil; i++ {
			var b report.Batch
			b, err = probe.block(&loops[i], each[i], &before)
			batches[i] = append(batches[i], b)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if world.Rank() != 0 {
		return nil, context.Cause(ctx)
	}
	if o.Transport == "" {
		o.Transport = Carrier(world)
	}
	results := make([]report.Result, len(loops))
	for i, n := range o.Bytes {
		results[i] = report.Result{Bench: "curve", Transport: o.Transport, Ranks: 2, Bytes: int64(n), Batches: batches[i]}
	}
	report.SetCurve(results)
	if !o.Batches {
		for i := range results {
			results[i].Batches = nil
		}
	}
	return results, context.Cause(ctx)
}
