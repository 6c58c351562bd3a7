// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"errors"
	"fmt"
	"math"
	"time"

	"gompi/mpi"
)

// Options say how stages are emulated. They are equal on all ranks, but for Costs.
type Options struct {
	// Factor multiplies the time of stages that compute or communicate for a time, not of
	// those with files: the published FactorS, 1/speed-up of these ranks. 0: they do nothing.
	Factor float64
	// Costs are the Costs of an emulation of the same stages; those of rank 0 count. nil:
	// all is measured.
	Costs []float64
	// Dir is where files are; "": the directory for temporary ones.
	Dir string
}

// Emulation does the stages of an iteration on the ranks of a communicator.
type Emulation struct {
	comm  *mpi.Comm
	o     Options
	parts []part
	sum   float64 // of what was computed, so that it cannot be left out
}

// part is a stage on this rank.
type part struct {
	Stage
	cost float64 // of an operation, in seconds; 0: it was not measured
	ops  int     // operations of an iteration; of IRing how many are started

	matrix    []float64
	out, in   []byte
	ins       [][]byte // of an IRing: for each receive that is under way
	counts    []int
	file      *file // nil: this rank has none
	requests  []mpi.Request
	completes []int // of a Wait: the stages
}

// New makes the emulation of an iteration, and finds out how many operations its stages
// have: what an operation takes is measured once on rank 0 if it computes, on all ranks
// for files, and anew in each call for messages, as that depends on the ranks. Collective
// over comm, which the caller keeps until Close. Errors: stages that Check refuses, those
// of communication and files.
func New(comm *mpi.Comm, list []Stage, o Options) (*Emulation, error) {
	if err := Check(list); err != nil {
		return nil, fmt.Errorf("stages: %w", err)
	}
	if math.IsNaN(o.Factor) || o.Factor < 0 || o.Factor > mostTime {
		return nil, fmt.Errorf("stages: a factor of %v", o.Factor)
	}
	e := &Emulation{comm: comm, o: o, parts: make([]part, len(list))}
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

// allocate makes what a stage works on.
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
		// One that has no file must not leave the others waiting for it.
		failed, err2 := mpi.AllreduceOne(e.comm, err != nil, mpi.LogOr)
		if err == nil && failed {
			err = errors.New("another rank has no file")
		}
		err = errors.Join(err, err2)
	}
	return err
}

// count finds out how many operations make the stage's time. Collective.
func (e *Emulation) count(p *part, given float64) (err error) {
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

// mostOps is how many operations a stage has at most.
const mostOps = 1 << 40

// fitting is how many operations make the stage's time.
func (e *Emulation) fitting(p *part) int {
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

// mostPending is how many operations of an IRing are under way at most, each of which
// receives into memory of its own.
func (p *part) mostPending() int {
	const memory = 64 << 20
	return max(1, min(1<<14, memory/p.size()))
}

// measure is what an operation of all ranks takes by rank 0's clock, in seconds.
// Collective.
func (e *Emulation) measure(p *part) (float64, error) {
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

// Costs is what an operation of each stage takes, in seconds: for the emulation of the
// same stages on other ranks. 0: it was not measured. Local.
func (e *Emulation) Costs() []float64 {
	list := make([]float64, len(e.parts))
	for i := range e.parts {
		list[i] = e.parts[i].cost
	}
	return list
}

// Operations is how many operations an iteration has of each stage; of one that is capped
// by time it says 1. Local.
func (e *Emulation) Operations() []int {
	list := make([]int, len(e.parts))
	for i := range e.parts {
		list[i] = e.parts[i].ops
	}
	return list
}

// Iterate does an iteration, and says how long it took here; took, which may be nil, is
// filled with the time of each stage. If it is rigid all ranks meet before it and after
// each stage, which makes the times precise and the whole longer. Collective.
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

// do does a stage.
func (e *Emulation) do(p *part) error {
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

// capped does operations until the stage's time has passed: that of rank 0 but for files,
// where each rank has its own.
func (e *Emulation) capped(p *part) error {
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

func (e *Emulation) compute(p *part) {
	if p.Kind == Pi {
		e.sum += pi(p.Granularity)
	} else {
		e.sum += squares(p.matrix)
	}
}

const tag = 99 // the published one

// exchange is one operation of a stage that does not compute.
func (e *Emulation) exchange(p *part) (err error) {
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

// complete waits for what an IRing has started.
func (p *part) complete() error {
	err := mpi.Waitall(p.requests)
	p.requests = p.requests[:0]
	return err
}

// Close gives back files. Local.
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
