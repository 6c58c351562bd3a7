// SPDX-License-Identifier: Apache-2.0

// Package bench holds the benchmarks of gompibench, one file each. All ranks
// of a communicator call Run; rank 0 gets the results.
//
// # What is timed
//
// A benchmark is a loop. Its number of iterations is given, or found before
// (calibration, which also warms up) so that a point takes Options.Time. The
// iterations run in 200 blocks of equal length, or fewer if there are fewer, or
// more if one would take longer than 8 ms; a block is timed as a whole, so that
// reading the clock costs nothing, and yields one time an operation. Median,
// minimum and 99th percentile are those of the blocks.
//
// Between blocks of two ranks on one host stands a probe: how long a line of
// memory takes from one's processor to the other's and back. If the probes of
// a run part, at a gap of a factor of 1.6 at least, the machine has had two
// states, near and far, and results have medians of each.
//
// An operation is one message, counted once, or one collective call:
//
//	latency    an iteration is there and back: 2 operations
//	echo       as latency, each message out of the buffer into which the last came
//	curve      latency at many sizes, in blocks that take turns
//	bw         a window of 64 messages, then an answer of 4 bytes: 64
//	bibw       a window of 64 messages in each direction: 128
//	mbw        as bw for each pair of ranks i, i+P/2 and each goroutine; the
//	           rates of all pairs and goroutines are added
//	column     an exchange of columns of a matrix of float64 between 2 ranks: 1;
//	           bytes are those that each sends
//	barrier, allreduce, allgather(v), alltoall(v), reduce_scatter(_block),
//	neighbor_allgather(v), neighbor_alltoall(v)
//	           1; rank 0's clock; neighbors are those of a periodic ring
//	bcast, gather(v), scatter(v), reduce, scan, exscan
//	           1; the time inside the call, mean of all ranks; a barrier that
//	           is not counted separates the calls
//
//	ibarrier, ibcast, iallgather, ialltoall(v), ireduce, iallreduce
//	           1; from the start to the end of Wait, otherwise as bcast
//
//	put, get, acc, getacc, fao, cas
//	           1; by rank 0 on rank 1's memory, with a flush
//	win        1; rank 0's clock; a window made of memory that is there, and freed
//	winalloc   the same of memory that the library allocates
//
// Overlap is measured on all ranks: the time of a collective and Wait alone;
// that of a loop which computes for as long; that of both, computing between
// start and Wait. 100 % are those of the time alone; what the third takes longer
// than the second is not overlapped. With Options.Idle ranks sleep instead of
// computing: what a machine does that has processors to spare.
//
// With Options.Target one-sided operations are measured a second time while
// rank 1 works for as long as several of them take; how long its work takes is
// compared with that beside a rank 0 that sleeps, and beside one that does the
// same operations on its own memory: the three in turn, medians. Computing
// shows what is taken of the target's processor, streaming what is taken of the
// memory's bandwidth besides.
//
// The size of a collective is that of one rank's block; of alltoall(v), that of
// all blocks of a rank. Reductions are sums of float64.
//
// So time x rate = bytes everywhere. bench/peers/peer.c has the same loops in
// C and must be changed with these.
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gompi/bench/report"
	"gompi/mpi"
)

// Options are the options of a measurement. They must be equal on all ranks.
type Options struct {
	// Bytes are the sizes to measure; nil means the benchmark's own list.
	// A benchmark without sizes ignores them.
	Bytes []int
	// Iters is the number of iterations of a point; 0 means as many as fit
	// into Time.
	Iters int
	// Time of a point; 0 means DefaultTime.
	Time time.Duration
	// Goroutines of each rank in mbw; 0 means 1. Others take only 1.
	Goroutines int
	// Overlap: measure also how much of a nonblocking collective is hidden behind
	// computing.
	Overlap bool
	// Idle: sleep instead of computing in the measurement of overlap, so that processors
	// are free for ranks that make progress meanwhile.
	Idle bool
	// Target is the work of the target of one-sided accesses: Computing or Streaming, to
	// measure also how much they and its work disturb each other; "": it waits in the
	// library.
	Target string
	// Given: windows of one-sided accesses use existing memory (rma.Create), not memory
	// that the library allocates.
	Given bool
	// Batches: results carry their blocks, with probes, for two ranks on one host.
	Batches bool
	// Transport is the name that results carry; "": that of the transport which carries
	// the messages of rank 0.
	Transport string
	// Progress, if not nil, is called on rank 0 before each point.
	Progress func(bytes, done, total int)
}

// DefaultTime of one point.
const DefaultTime = 300 * time.Millisecond

// MaxGoroutines is the largest Options.Goroutines.
const MaxGoroutines = 64

func (o *Options) validate(b *Benchmark, ranks int) error {
	switch {
	case o.Iters < 0:
		return fmt.Errorf("bench: %d iterations", o.Iters)
	case o.Time < 0:
		return fmt.Errorf("bench: %v a point", o.Time)
	case o.Goroutines < 0 || o.Goroutines > MaxGoroutines:
		return fmt.Errorf("bench: %d goroutines, must be 1 to %d", o.Goroutines, MaxGoroutines)
	case o.Goroutines > 1 && b.Name != "mbw":
		return fmt.Errorf("bench: %d goroutines: only mbw takes several", o.Goroutines)
	case o.Overlap && !b.overlaps:
		return fmt.Errorf("bench: overlap: %s is not a nonblocking collective", b.Name)
	case o.Idle && !o.Overlap:
		return errors.New("bench: idle is for overlap only")
	case o.Target != "" && o.Target != Computing && o.Target != Streaming:
		return fmt.Errorf("bench: target %q, must be %s or %s", o.Target, Computing, Streaming)
	case (o.Target != "" || o.Given) && !b.targets:
		return fmt.Errorf("bench: %s does not access a target's memory", b.Name)
	case ranks < 2:
		return fmt.Errorf("bench: %s needs at least 2 ranks; run it as: gompirun -np 2 gompibench %s", b.Name, b.Name)
	case b.pair && ranks != 2:
		return fmt.Errorf("bench: %s needs exactly 2 ranks, not %d", b.Name, ranks)
	case b.Name == "mbw" && ranks%2 != 0:
		return fmt.Errorf("bench: mbw needs an even number of ranks, not %d", ranks)
	}
	limit := MaxBytes
	if b.Name == "column" {
		limit = matrix / 2 * columnBytes
	}
	for _, n := range o.Bytes {
		if n < 0 || n > limit {
			return fmt.Errorf("bench: %d bytes, must be 0 to %d", n, limit)
		}
		if unit := b.unit(); n%unit != 0 {
			return fmt.Errorf("bench: %d bytes: %s takes multiples of %d", n, b.Name, unit)
		}
	}
	if o.Time == 0 {
		o.Time = DefaultTime
	}
	o.Goroutines = max(o.Goroutines, 1)
	if b.Bytes == nil {
		o.Bytes = []int{0}
	} else if o.Bytes == nil {
		o.Bytes = b.Bytes
	}
	return nil
}

// Benchmark is one entry of the table.
type Benchmark struct {
	Name, Help string
	// Bytes are the sizes measured by default; nil: it has no sizes.
	Bytes    []int
	shape    shape // of a collective
	overlaps bool  // its loop can compute during the operation
	targets  bool  // rank 0 accesses the memory of rank 1
	// pair: it needs exactly two ranks.
	pair bool
	// prepare allocates buffers and returns this rank's loop.
	prepare func(world *mpi.Comm, o *Options, bytes int) loop
}

// unit returns the number that sizes must be a multiple of.
func (b *Benchmark) unit() int {
	switch {
	case b.shape&(sums|manySums) != 0:
		return 8
	case b.Name == "column":
		return columnBytes
	}
	return 1
}

// Bounds of the sizes of a curve.
var (
	messageSizes    = []int{1, 8, 64, 512, 4 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20}
	columnSizes     = []int{32 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 32 << 20}
	collectiveSizes = []int{8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20}
)

// All returns the benchmarks in the order of the help.
func All() []Benchmark {
	return slices.Concat([]Benchmark{
		{Name: "latency", Help: "ping-pong between 2 ranks: time one way", Bytes: messageSizes, pair: true, prepare: prepareLatency},
		{Name: "echo", Help: "as latency, but each sends what it has received, from the same buffer", Bytes: messageSizes, pair: true, prepare: prepareEcho},
		{Name: "bw", Help: "windows of 64 messages from rank 0 to rank 1", Bytes: messageSizes, pair: true, prepare: prepareBw},
		{Name: "bibw", Help: "windows of 64 messages in both directions at once", Bytes: messageSizes, pair: true, prepare: prepareBibw},
		{Name: "mbw", Help: "as bw, by all pairs of ranks i, i+P/2 at once (--goroutines)", Bytes: messageSizes, prepare: prepareMbw},
		{Name: "column", Help: "2 ranks exchange columns of a 4096 x 4096 matrix of float64", Bytes: columnSizes, pair: true, prepare: prepareColumn},
		{Name: "blocks", Help: "blocks of columns of a square matrix of float64, of 64 to 2048 rows, to each rank from rank 0 (scatterv of overlapping types); a size is the matrix", Bytes: blockSizes, prepare: prepareBlocks},
	}, collectiveBenchmarks(), neighborBenchmarks(), nonblockingBenchmarks(), oneSidedBenchmarks())
}

// Find returns the benchmark with a name.
func Find(name string) (Benchmark, bool) {
	for _, b := range All() {
		if b.Name == name {
			return b, true
		}
	}
	return Benchmark{}, false
}

// Carrier returns the name of the transport between the caller and the next rank that it
// has exchanged messages with, as Comm.Transport does; "": there is none. Local.
func Carrier(world *mpi.Comm) string {
	for i := 1; i < world.Size(); i++ {
		if name := world.Transport((world.Rank() + i) % world.Size()); name != "" {
			return name
		}
	}
	return ""
}

// Run measures b at each size. It is collective over world. On rank 0, emit is called with
// each result as soon as it is known, and its error ends the run. ctx ends it between two
// points. Errors: invalid options, those of communication.
func (b *Benchmark) Run(ctx context.Context, world *mpi.Comm, o Options, emit func(report.Result) error) error {
	if err := o.validate(b, world.Size()); err != nil {
		return err
	}
	var probe *probe
	var seen []report.Batch // rank 0's
	if world.Size() == 2 {
		var err error
		if probe, err = newProbe(world); err != nil {
			return err
		}
		defer probe.close()
	}
	for i, n := range o.Bytes {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if o.Progress != nil && world.Rank() == 0 {
			o.Progress(n, i, len(o.Bytes))
		}
		r := report.Result{Bench: b.Name, Transport: o.Transport, Ranks: world.Size(), Bytes: int64(n)}
		l := b.prepare(world, &o, n)
		if err := l.measure(world, &o, probe, &r); err != nil {
			return fmt.Errorf("%s at %d bytes: %w", b.Name, n, err)
		}
		if r.Transport == "" {
			r.Transport = Carrier(world)
		}
		if o.Overlap {
			percent, err := l.overlap(world, &o, r.Usec)
			if err != nil {
				return fmt.Errorf("%s at %d bytes: %w", b.Name, n, err)
			}
			r.Overlap = &percent
		}
		if o.Target != "" {
			if err := l.disturb(world, &o, &r); err != nil {
				return fmt.Errorf("%s at %d bytes: %w", b.Name, n, err)
			}
		}
		if l.close != nil {
			if err := l.close(); err != nil {
				return fmt.Errorf("%s at %d bytes: %w", b.Name, n, err)
			}
		}
		if world.Rank() == 0 {
			seen = append(seen, r.Batches...)
			if cut := report.Cut(seen); cut > 0 {
				states := report.SplitStates(r.Batches, cut)
				r.States = &states
			}
			if !o.Batches {
				r.Batches = nil
			}
			if err := emit(r); err != nil {
				return err
			}
		}
	}
	return nil
}
