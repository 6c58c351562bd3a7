// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"errors"
	"fmt"
	"math"
	"time"

	"gompi/mpi"
)

// Options are the options of an emulation. They must be equal on all ranks, except Costs.
type Options struct {
	// Factor multiplies the time of stages that compute or communicate for a time, not of
	// those with files: the published FactorS, 1/speed-up of these ranks. 0: these stages
	// do nothing.
	Factor float64
	// Costs are the Costs of an emulation of the same stages; those of rank 0 count. nil:
	// all costs are measured.
	Costs []float64
	// Dir is the directory of files; "": the directory for temporary ones.
	Dir string
}

// Emulation runs the stages of an iteration on the ranks of a communicator.
type Emulation struct {
	comm  *mpi.Comm
	o     Options
	parts []stageState
	sum   float64 // sum of the results, so that the compiler keeps the computing
}

// stageState is a stage on this rank.
type stageState struct {
	Stage
	cost float64 // time of an operation in seconds; 0: it was not measured
	ops  int     // operations of an iteration; for IRing, those started

	matrix    []float64
	out, in   []byte
	ins       [][]byte // of an IRing: buffers of the receives under way
	counts    []int
	file      *file // nil: this rank has no file
	requests  []mpi.Request
	completes []int // of a Wait: the stages it completes
}

// New makes the emulation of an iteration, and determines the number of operations of its
// stages. The cost of an operation is measured once: on rank 0 for computing, on all ranks
// for files, and in each call for messages, as that depends on the ranks. Collective over
// comm, which the caller keeps until Close. Errors: stages that Check refuses, those of
// communication and files.
func New(comm *mpi.Comm, list []Stage, o Options) (*Emulation, error) {
	if err := Check(list); err != nil {
		return nil, fmt.Errorf("stages: %w", err)
	}
	if math.IsNaN(o.Factor) || o.Factor < 0 || o.Factor > mostTime {
		return nil, fmt.Errorf("stages: a factor of %v", o.Factor)
	}
	e := &Emulation{comm: comm, o: o, parts: make([]stageState, len(list))}
	given := make([]float64, len(list))
	if len(o.Costs) == len(list) {
		copy(given, o.Costs)
	}
	if err := mpi.Bcast(comm, given, 0); err != nil {
		return nil, err
	}
	for i := range list {
		p := &e.parts[i]
		p.Stage, p.ops = list[i], 1
		err := e.allocate(i)
		if err == nil && p.timed() {
			err = e.count(p, given[i])
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("stage %d, %v: %w", i, p.Kind, err), e.Close())
		}
	}
	return e, nil
}

// allocate makes the data of a stage.
func (e *Emulation) allocate(i int) (err error) {
	p := &e.parts[i]
	rank, ranks := e.comm.Rank(), e.comm.Size()
	switch p.Kind {
	case Matrix:
		p.matrix = newMatrix(p.Granularity)
	case Ring, Reduce, Allreduce:
		p.out, p.in = make([]byte, p.size()), make([]byte, p.size())
	case Bcast, IRing:
		p.out = make([]byte, p.size())
	case Allgather:
		p.counts = make([]int, ranks)
		for r := range p.counts {
			p.counts[r] = p.size() / ranks
			if r < p.size()%ranks {
				p.counts[r]++
			}
		}
		p.out, p.in = make([]byte, p.counts[rank]), make([]byte, p.size())
	case Wait:
		for j := range i {
			if q := &e.parts[j]; q.Kind == IRing && q.ID == p.ID {
				p.completes = append(p.completes, j)
			}
		}
	case Write, Read:
		if p.Involved == 0 || rank < p.Involved {
			p.file, err = newFile(e.o.Dir, p.Kind, p.size())
		}
		// A rank without a file must not let the others wait for it.
		failed, err2 := mpi.AllreduceOne(e.comm, err != nil, mpi.LogOr)
		if err == nil && failed {
			err = errors.New("another rank has no file")
		}
		err = errors.Join(err, err2)
	}
	return err
}

// count determines the number of operations of the stage. Collective.
func (e *Emulation) count(p *stageState, given float64) (err error) {
	p.cost = given
	switch {
	case p.Kind.computes():
		if p.cost <= 0 && e.comm.Rank() == 0 {
			p.cost = cost(func() { e.compute(p) }).Seconds()
		}
	case p.Kind.files() && p.cost > 0:
	default:
		p.cost, err = e.measure(p)
	}
	if err != nil {
		return err
	}
	if p.cost, err = mpi.BcastOne(e.comm, p.cost, 0); err != nil {
		return err
	}
	p.ops = e.fitting(p)
	return nil
}

// mostOps bounds the operations of a stage.
const mostOps = 1 << 40

// fitting returns the number of operations that fit into the stage's time.
func (e *Emulation) fitting(p *stageState) int {
	factor := e.o.Factor
	if p.Kind.files() {
		factor = 1
	}
	n := math.Ceil(p.Seconds * factor / p.cost)
	most := mostOps
	if p.Kind == IRing {
		most = p.mostPending()
	}
	return int(min(max(n, 0), float64(most)))
}

// mostPending bounds the operations of an IRing under way, each of which receives into
// memory of its own.
func (p *stageState) mostPending() int {
	const memory = 64 << 20
	return max(1, min(1<<14, memory/p.size()))
}

// measure returns the time of an operation of all ranks by rank 0's clock, in seconds.
// Collective.
func (e *Emulation) measure(p *stageState) (float64, error) {
	const enough = 5 * time.Millisecond
	for n := 1; ; n *= 2 {
		if err := e.comm.Barrier(); err != nil {
			return 0, err
		}
		begin := time.Now()
		p.ops = n
		err := e.do(p)
		if p.Kind == IRing {
			err = errors.Join(err, p.complete())
		}
		if err != nil {
			return 0, err
		}
		if err := e.comm.Barrier(); err != nil {
			return 0, err
		}
		took, err := mpi.BcastOne(e.comm, int64(time.Since(begin)), 0)
		if err != nil {
			return 0, err
		}
		if time.Duration(took) >= enough || n >= mostOps || p.Kind == IRing && 2*n > p.mostPending() {
			return max(time.Duration(took).Seconds()/float64(n), 1e-9), nil
		}
	}
}

// Costs returns the time of an operation of each stage in seconds, for the emulation of
// the same stages on other ranks. 0: it was not measured. Local.
func (e *Emulation) Costs() []float64 {
	list := make([]float64, len(e.parts))
	for i := range e.parts {
		list[i] = e.parts[i].cost
	}
	return list
}

// Operations returns the number of operations of each stage in an iteration; 1 for a stage
// that is capped by time. Local.
func (e *Emulation) Operations() []int {
	list := make([]int, len(e.parts))
	for i := range e.parts {
		list[i] = e.parts[i].ops
	}
	return list
}

// Iterate runs an iteration, and returns its time here; took, which may be nil, gets the
// time of each stage. A rigid iteration has a barrier before it and after each stage,
// which makes the times exact and the whole longer. Collective.
func (e *Emulation) Iterate(rigid bool, took []time.Duration) (time.Duration, error) {
	meet := func() error {
		if rigid {
			return e.comm.Barrier()
		}
		return nil
	}
	if err := meet(); err != nil {
		return 0, err
	}
	begin := time.Now()
	for i := range e.parts {
		p := &e.parts[i]
		at := time.Now()
		if err := e.do(p); err != nil {
			return 0, fmt.Errorf("stage %d, %v: %w", i, p.Kind, err)
		}
		if err := meet(); err != nil {
			return 0, err
		}
		if i < len(took) {
			took[i] = time.Since(at)
		}
	}
	return time.Since(begin), nil
}

// do runs a stage.
func (e *Emulation) do(p *stageState) error {
	switch {
	case p.Kind.computes():
		for range p.ops {
			e.compute(p)
		}
		return nil
	case p.Kind == Wait:
		var all []error
		for _, j := range p.completes {
			all = append(all, e.parts[j].complete())
		}
		return errors.Join(all...)
	case p.Kind.files() && p.file == nil:
		return nil
	case p.Capped && p.Kind != IRing:
		return e.capped(p)
	}
	for range p.ops {
		if err := e.exchange(p); err != nil {
			return err
		}
	}
	return nil
}

// capped runs operations until the stage's time has passed, by rank 0's clock, or for
// files by each rank's own.
func (e *Emulation) capped(p *stageState) error {
	begin := time.Now()
	for spent := 0.0; spent < p.Seconds; {
		if err := e.exchange(p); err != nil {
			return err
		}
		spent = time.Since(begin).Seconds()
		if p.Kind.files() {
			continue
		}
		var err error
		if spent, err = mpi.BcastOne(e.comm, spent, 0); err != nil {
			return err
		}
	}
	return nil
}

func (e *Emulation) compute(p *stageState) {
	if p.Kind == Pi {
		e.sum += pi(p.Granularity)
	} else {
		e.sum += squares(p.matrix)
	}
}

const tag = 99 // the published one

// exchange runs one operation of a stage that does not compute.
func (e *Emulation) exchange(p *stageState) (err error) {
	c := e.comm
	next, before := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	switch p.Kind {
	case Ring:
		_, err = mpi.Sendrecv(c, p.out, next, tag, p.in, before, tag)
	case IRing:
		n := len(p.requests) / 2
		if n == len(p.ins) {
			p.ins = append(p.ins, make([]byte, p.size()))
		}
		p.requests = append(p.requests, mpi.Irecv(c, p.ins[n], before, tag), mpi.Isend(c, p.out, next, tag))
	case Bcast:
		err = mpi.Bcast(c, p.out, 0)
	case Allgather:
		err = mpi.Allgatherv(c, p.out, p.in, p.counts, nil)
	case Reduce:
		err = mpi.Reduce(c, p.out, p.in, mpi.Max, 0)
	case Allreduce:
		err = mpi.Allreduce(c, p.out, p.in, mpi.Max)
	case Write:
		err = p.file.move(p.file.f.WriteAt, p.size())
	case Read:
		err = p.file.move(p.file.f.ReadAt, p.size())
	}
	return err
}

// complete waits for the operations that an IRing has started.
func (p *stageState) complete() error {
	err := mpi.Waitall(p.requests)
	p.requests = p.requests[:0]
	return err
}

// Close frees the files. Local.
func (e *Emulation) Close() error {
	var all []error
	for i := range e.parts {
		if f := e.parts[i].file; f != nil {
			all = append(all, f.f.Close())
			e.parts[i].file = nil
		}
	}
	return errors.Join(all...)
}
