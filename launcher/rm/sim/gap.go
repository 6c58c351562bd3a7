// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"

	"gompi/internal/resize/col"
	"gompi/launcher/rm"
)

// Gap measures how near a policy comes to the optimum in many small cases, one decision
// each. It counts shares of the gain of the best decision.
type Gap struct {
	Cases       int // cases in which a decision can gain
	Mean, Worst float64
	Best        int // cases in which the policy reaches the optimum
}

// Gaps compares policies with brute force on random cases of up to 16 slots and 4 jobs
// with costs, priorities and sizes.
func Gaps(policies []rm.Policy, cases int, seed uint64) ([]Gap, error) {
	gaps := make([]Gap, len(policies))
	for i := range gaps {
		gaps[i].Worst = 1
	}
	r := rand.New(rand.NewPCG(seed, 16))
	for range cases {
		t := smallCase(r)
		_, most, err := rm.Optimum(t)
		if err != nil {
			return nil, err
		}
		none := t.Value(nil)
		if most <= none*(1+1e-9) {
			continue
		}
		for i, p := range policies {
			share := (t.Value(p.Decide(t)) - none) / (most - none)
			g := &gaps[i]
			g.Cases++
			g.Mean += share
			if g.Worst = min(g.Worst, share); share > 1-1e-9 {
				g.Best++
			}
		}
	}
	for i := range gaps {
		gaps[i].Mean /= float64(max(1, gaps[i].Cases))
	}
	return gaps, nil
}

// noPolicy decides nothing.
type noPolicy struct{}

func (noPolicy) Name() string                   { return "none" }
func (noPolicy) Decide(*rm.Table) []rm.Decision { return nil }

// smallCase makes a random case.
func smallCase(r *rand.Rand) *rm.Table {
	slots := 2 + r.IntN(rm.MostSlots-1)
	s := rm.NewShared(rm.Config{Policy: noPolicy{}})
	events := []rm.Event{rm.Slots{Total: slots}}
	free := slots
	for id := range 1 + r.IntN(rm.MostJobs) {
		c := &col.COL{
			Version: col.Version, Model: &col.Model{Kind: col.Amdahl, Serial: r.Float64() / 10, Parallel: 1},
			Min: r.IntN(4), Priority: 1 + r.IntN(3), Hysteresis: r.Float64() / 10, PowerOfTwo: r.IntN(3) == 0, Cost: col.Number(10),
		}
		j := rm.Job{ID: rm.JobID(id), COL: c, Follows: true, Start: c.Largest(0, 1+r.IntN(slots))}
		if r.IntN(2) == 0 {
			j.Size = c.Largest(0, 1+r.IntN(max(1, free)))
			if j.Size > free {
				j.Size = 0
			}
			free -= j.Size
		}
		if j.Start == 0 {
			j.Start = c.Largest(0, slots)
		}
		events = append(events, rm.Arrived{Job: j})
	}
	s.Step(0, events...)
	return s.Table()
}
