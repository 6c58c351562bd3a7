// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/collectives/sim"
)

// Simulation describes the collective calls to predict: one by each algorithm, at each
// number of ranks and each size.
type Simulation struct {
	Op collectives.Op
	// Algorithms are the names to try; nil: all of the operation.
	Algorithms []string
	Ranks      []int
	// Bytes are the sizes: the whole of bcast, reduce, allreduce, scan and
	// exscan; the block of one rank, pair or neighbour of the others. Barriers
	// ignore them. Elements have 8 bytes if the size is a multiple of 8, else
	// one.
	Bytes []int
	Root  int
	// PerNode is the number of ranks of a node; 0 or 1: every rank has its own.
	PerNode int
	Machine sim.Machine
}

// Predicted is one row of a Simulation. The field names of its JSON form are a contract
// with scripts.
type Predicted struct {
	Bench     string  `json:"bench"` // "simulate"
	Op        string  `json:"op"`
	Algorithm string  `json:"algorithm"`
	Ranks     int     `json:"ranks"`
	PerNode   int     `json:"per_node,omitempty"`
	Bytes     int64   `json:"bytes"`
	Usec      float64 `json:"usec"` // until the last rank returns
	// Best is Usec of the fastest algorithm at this point.
	Best  float64 `json:"usec_best"`
	Steps int     `json:"steps"`
	// Messages and Moved are totals over all ranks; 0 if extrapolated.
	Messages int64 `json:"messages,omitempty"`
	Moved    int64 `json:"moved_bytes,omitempty"`
	// Scratch is the largest scratch memory of a rank, in bytes.
	Scratch int64 `json:"scratch_bytes"`
	// Selected: the built-in table chooses this algorithm.
	Selected bool `json:"selected"`
	// From are the numbers of ranks from which Usec is extrapolated; nil: all ranks were
	// simulated.
	From []int `json:"extrapolated_from,omitempty"`
}

// algorithms returns the algorithms to try.
func (s *Simulation) algorithms() ([]*collectives.Algorithm, error) {
	var list []*collectives.Algorithm
	for _, name := range s.Algorithms {
		g, err := selection.ByName(s.Op, name)
		if err != nil {
			return nil, err
		}
		list = append(list, g)
	}
	if s.Algorithms == nil {
		for _, g := range selection.All() {
			if g.Op == s.Op {
				list = append(list, g)
			}
		}
	}
	return list, nil
}

// sizes returns the sizes to try: a barrier has none.
func (s *Simulation) sizes() []int {
	if s.Op == collectives.OpBarrier {
		return []int{0}
	}
	return s.Bytes
}

// call is the call of an algorithm at one point.
func (s *Simulation) call(g *collectives.Algorithm, ranks, bytes int) sim.Call {
	c := sim.Call{Alg: g, Ranks: ranks, Root: s.Root, ElemBytes: 1, PerNode: s.PerNode}
	if bytes%8 == 0 {
		c.ElemBytes = 8
	}
	c.Count = int64(bytes / c.ElemBytes)
	return c
}

// Run predicts all points. emit is called with the rows of each point, in order;
// algorithms that do not support a number of ranks have no row. progress, if not nil, is
// called when a prediction begins, by one goroutine at a time, with the predictions done
// and their total. Errors: an invalid name, size, root or machine, the end of ctx, the
// error of emit.
func (s *Simulation) Run(ctx context.Context, progress func(what string, done, total int), emit func([]Predicted) error) error {
	algs, err := s.algorithms()
	if err != nil {
		return err
	}
	sizes := s.sizes()
	table := selection.DefaultTable()
	predicted := false
	j := job{machine: &s.Machine, total: len(algs) * len(sizes) * len(s.Ranks), progress: progress}
	for _, ranks := range s.Ranks {
		for _, bytes := range sizes {
			var calls []sim.Call
			for _, g := range algs {
				c := s.call(g, ranks, bytes)
				switch err := c.Validate(); {
				case errors.Is(err, sim.ErrNotAdmitted):
					j.total--
				case err != nil:
					return err
				default:
					calls = append(calls, c)
				}
			}
			rows, err := j.point(ctx, calls)
			if err != nil {
				return err
			}
			if len(rows) == 0 {
				continue
			}
			predicted = true
			best := rows[0].Usec
			for _, r := range rows {
				best = min(best, r.Usec)
			}
			selected := calls[0].Selected(table)
			for i := range rows {
				r := &rows[i]
				r.Op, r.PerNode, r.Bytes, r.Best = s.Op.String(), s.PerNode, int64(bytes), best
				r.Selected = r.Algorithm == selected.Name
			}
			if err := emit(rows); err != nil {
				return err
			}
		}
	}
	if !predicted {
		return fmt.Errorf("bench: none of these algorithms of %v can do these numbers of ranks and nodes", s.Op)
	}
	return nil
}

// job counts predictions.
type job struct {
	machine  *sim.Machine
	progress func(string, int, int)

	mu          sync.Mutex
	done, total int
}

// point predicts some calls, as many at once as there are processors.
func (j *job) point(ctx context.Context, calls []sim.Call) ([]Predicted, error) {
	rows, errs := make([]Predicted, len(calls)), make([]error, len(calls))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(len(calls), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(calls); i = int(next.Add(1)) - 1 {
				if ctx.Err() != nil {
					errs[i] = context.Cause(ctx)
					return
				}
				rows[i], errs[i] = j.predict(&calls[i])
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (j *job) predict(c *sim.Call) (Predicted, error) {
	if j.progress != nil {
		j.mu.Lock()
		j.progress(fmt.Sprintf("%v, %d ranks, %d bytes", c.Alg, c.Ranks, c.Count*int64(c.ElemBytes)), j.done, j.total)
		j.mu.Unlock()
	}
	p, err := sim.Predict(c, j.machine, sim.Limits{})
	if err != nil {
		return Predicted{}, err
	}
	j.mu.Lock()
	j.done++
	j.mu.Unlock()
	return Predicted{
		Bench: "simulate", Algorithm: c.Alg.Name, Ranks: c.Ranks, Usec: p.Usec, Steps: c.Steps(), Scratch: c.Scratch(),
		Messages: p.Messages, Moved: p.Bytes, From: p.From,
	}, nil
}

// MaxTraceRanks is the largest group whose messages Trace prints.
const MaxTraceRanks = 256

// Trace calls emit with the messages of each call, in the order of their starts. Errors:
// as Run, and more than MaxTraceRanks ranks.
func (s *Simulation) Trace(emit func(c *sim.Call, r sim.Result, ms []sim.Message) error) error {
	algs, err := s.algorithms()
	if err != nil {
		return err
	}
	for _, ranks := range s.Ranks {
		if ranks > MaxTraceRanks {
			return fmt.Errorf("bench: the trace of %d ranks is too long to read, at most %d", ranks, MaxTraceRanks)
		}
		for _, bytes := range s.sizes() {
			for _, g := range algs {
				c := s.call(g, ranks, bytes)
				var ms []sim.Message
				r, err := sim.Run(&c, &s.Machine, func(m sim.Message) { ms = append(ms, m) })
				if errors.Is(err, sim.ErrNotAdmitted) {
					continue
				}
				if err != nil {
					return err
				}
				slices.SortStableFunc(ms, func(a, b sim.Message) int {
					return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
				})
				if err := emit(&c, r, ms); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
