// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"

	"gompi/collectives"
)

// Limits say how large a simulation may be. The zero value means
// DefaultLimits.
type Limits struct {
	// Work and WorkPerRank times the ranks are together the number of rounds
	// and steps of all ranks: about 10 million take a second.
	Work, WorkPerRank int64
	// Waiting is the number of messages under way at once, some 70 bytes each.
	Waiting int64
}

// DefaultLimits let a simulation take 1 GiB, and seconds; half a minute with
// MaxRanks. They admit that many ranks with a logarithmic number of messages
// each: what is extrapolated must grow with the number of ranks.
func DefaultLimits() Limits { return Limits{Work: 1 << 24, WorkPerRank: 256, Waiting: 3 << 21} }

// share is a part of the limits.
func (l Limits) share(of int64) Limits {
	return Limits{l.Work / of, l.WorkPerRank / of, l.Waiting / of}
}

// smaller is the share of Limits that a group may take from which is
// extrapolated.
const smaller = 32

// Prediction is a result for a number of ranks.
type Prediction struct {
	Result
	// From is nil if all ranks were simulated. Else Usec is extrapolated from
	// groups of these sizes, the largest last, and Messages and Bytes are 0.
	From []int
}

// Predict simulates a call on all its ranks if that is expected to stay within
// the limits. If not it simulates groups of a half, a quarter, ... of the ranks
// and extends the line through the largest two: where a rank sends to each
// other one, the time grows by the same amount with each rank. Algorithms that
// cut the data into a block for each rank get less data on fewer ranks for
// this, so that blocks have the length that they have on all. Errors: as Run.
func Predict(c *Call, m *Machine, l Limits) (Prediction, error) {
	if err := c.Validate(); err != nil {
		return Prediction{}, err
	}
	if l == (Limits{}) {
		l = DefaultLimits()
	}
	sizes := ladder(c)
	var last, before Result
	for i := 0; i < len(sizes); i++ {
		if i >= 2 {
			far := math.Log2(float64(c.Ranks) / float64(sizes[i-1]))
			switch {
			case l.admit(c.Ranks, before, last, far):
				// Small groups do not show yet how the needs grow.
				if sizes[i-1] >= 64*max(16, c.PerNode) {
					i = len(sizes) - 1
				}
			case i == len(sizes)-1, !l.share(smaller).admit(sizes[i], before, last, 1):
				return c.extend(m, sizes[i-2:i:i], before, last)
			}
		}
		step := c.shrunk(sizes[i])
		res, err := Run(&step, m, nil)
		if err != nil {
			return Prediction{}, err
		}
		if step.Count < int64(step.Ranks) && i < len(sizes)-1 {
			// Blocks without elements make no steps, but looking for those
			// that have some may be as much work as all steps would be.
			step.Count = int64(step.Ranks)
			full, err := Run(&step, m, nil)
			if err != nil {
				return Prediction{}, err
			}
			res.work, res.waits = full.work, full.waits
		}
		before, last = last, res
	}
	return Prediction{Result: last}, nil
}

// shrunk is the call on fewer ranks.
func (c *Call) shrunk(ranks int) Call {
	s := *c
	s.Ranks = ranks
	s.Root = int(int64(c.Root) * int64(ranks) / int64(c.Ranks))
	return s
}

// ladder lists group sizes, each about half of the next and the largest that
// of the call. Algorithms look at the powers of two in the number of ranks and
// at nodes: a smaller group is a power of two only if the whole is, its nodes
// are full but for a last one like that of the whole, and without nodes it is
// divisible by 2 as often, up to 32.
func ladder(c *Call) []int {
	unit := max(1, c.PerNode)
	smallest := max(32, min(8*unit, 512), 2*unit)
	rest := c.Ranks % unit
	full := c.Ranks - rest
	for unit < 32 && full%(2*unit) == 0 {
		unit *= 2
	}
	var sizes []int
	for k := 24; k > 0; k-- {
		p := full>>k/unit*unit + rest
		if p&(p-1) == 0 && c.Ranks&(c.Ranks-1) != 0 {
			p -= unit
		}
		if p >= smallest {
			sizes = append(sizes, p)
		}
	}
	return append(sizes, c.Ranks)
}

// admit reports whether a group of so many ranks, doubled so many times from
// the last one, stays within the limits if its needs multiply each time as they
// did the last time.
func (l Limits) admit(ranks int, before, last Result, doublings float64) bool {
	at := func(before, last int64) float64 {
		return float64(last) * math.Pow(float64(last)/float64(max(1, before)), doublings)
	}
	return at(before.work, last.work) <= float64(l.Work+l.WorkPerRank*int64(ranks)) && at(before.waits, last.waits) <= float64(l.Waiting)
}

// extend draws the line through the last two sizes.
func (c *Call) extend(m *Machine, sizes []int, before, last Result) (Prediction, error) {
	if cuts(c.Alg.Op, before, last) {
		for i, res := range []*Result{&before, &last} {
			step := c.shrunk(sizes[i])
			step.Count = max(1, int64(math.Round(float64(c.Count)*float64(step.Ranks)/float64(c.Ranks))))
			var err error
			if *res, err = Run(&step, m, nil); err != nil {
				return Prediction{}, err
			}
		}
	}
	usec, ok := c.fit(sizes, before.Usec, last.Usec)
	if !ok {
		slope := (last.Usec - before.Usec) / float64(sizes[1]-sizes[0])
		usec = last.Usec + slope*float64(c.Ranks-sizes[1])
	}
	return Prediction{Result{Usec: max(last.Usec, usec)}, sizes}, nil
}

// fit extends times of two sizes for an algorithm whose steps grow, but less
// than the ranks: so much for each step and so much for each element that rank 0
// sends. It is false for others, and if the two cannot be told apart.
func (c *Call) fit(sizes []int, before, last float64) (usec float64, ok bool) {
	cost := func(ranks int) (steps, sent float64) {
		call := c.shrunk(ranks)
		a := call.arguments().at(0)
		return float64(c.Alg.Steps(a)), float64(c.Alg.Sent(a))
	}
	s0, n0 := cost(sizes[0])
	s1, n1 := cost(sizes[1])
	s, n := cost(c.Ranks)
	det := s0*n1 - s1*n0
	if s1 <= s0 || s1 > 1.5*s0 || math.Abs(det) < 1e-9*s1*n1 {
		return 0, false
	}
	perStep, perElement := (before*n1-last*n0)/det, (s0*last-s1*before)/det
	return perStep*s + perElement*n, true
}

// cuts reports whether messages become shorter with more ranks although the
// ranks' data does not.
func cuts(op collectives.Op, before, last Result) bool {
	switch op {
	case collectives.OpBcast, collectives.OpReduce, collectives.OpAllreduce, collectives.OpScan, collectives.OpExscan:
		// Half of what they were, or as long.
		return float64(last.Bytes)*float64(before.Messages) < 0.75*float64(before.Bytes)*float64(last.Messages)
	}
	return false
}
