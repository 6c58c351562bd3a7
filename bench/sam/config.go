// SPDX-License-Identifier: Apache-2.0

package sam

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"

	"gompi/bench/stages"
	"gompi/mam"
)

// CG is a configuration that comes along: the emulation of a conjugate gradient.
//
//go:embed cg.json
var CG []byte

// Config is an application.
type Config struct {
	// SDR are the bytes that are redistributed while the sources wait, and ADR while they
	// iterate, where the method can; Datasize those of an element.
	SDR, ADR int64
	Datasize int
	// Rigid: ranks meet around each stage, so that its time is precise.
	Rigid   bool
	Capture Capture
	Phases  []Phase
	Groups  []Group
}

// Phase is so many iterations of the same stages.
type Phase struct {
	Iters  int
	Stages []stages.Stage
}

// Group is the ranks between two changes. How the data comes to them is said here, not at
// the group before.
type Group struct {
	// Iters is how many iterations it does before the next group is asked for. Of the last
	// one it does not count: that does what is left of all phases.
	Iters     int
	Procs     int
	Factor    float64 // 1/speed-up beside the time of stages
	Process   mam.Process
	Spawn     mam.Spawn
	Placement mam.Placement
	Method    mam.Method
	Strategy  mam.Strategy
}

// Capture is what becomes of the times of an iteration on several ranks.
type Capture int

// The published captures.
const (
	Max Capture = iota
	Mean
	Median // and the stages of the rank that has it
)

// Bounds of a configuration.
const (
	mostProcs = 1 << 20
	mostIters = 1 << 30
	mostData  = 1 << 45 // bytes
	mostList  = 1000    // phases, groups, stages of a phase
)

// Check says what is wrong with a configuration, by the published rules: of structure and
// stages.
func (c *Config) Check() error {
	var all []error
	bad := func(format string, v ...any) { all = append(all, fmt.Errorf(format, v...)) }
	if c.SDR < 0 || c.ADR < 0 || c.SDR > mostData || c.ADR > mostData {
		bad("general: SDR of %d bytes, ADR of %d", c.SDR, c.ADR)
	}
	if !slices.Contains(sizes, c.Datasize) {
		bad("general.Datasize: elements of %d bytes; there are those of %v", c.Datasize, sizes)
	}
	if c.Capture < Max || c.Capture > Median {
		bad("general.Capture_Method: %d is none of 0 (max), 1 (mean), 2 (median)", c.Capture)
	}
	if n := len(c.Phases); n < 1 || n > mostList {
		bad("phases: %d", n)
	}
	for i, p := range c.Phases {
		if p.Iters < 1 || p.Iters > mostIters {
			bad("phases[%d].Total_Iters: %d", i, p.Iters)
		}
		if n := len(p.Stages); n < 1 || n > mostList {
			bad("phases[%d].stages: %d", i, n)
		} else if err := stages.Check(p.Stages); err != nil {
			bad("phases[%d].stages: %w", i, err)
		}
	}
	if n := len(c.Groups); n < 1 || n > mostList {
		bad("groups: %d", n)
	}
	for i := range c.Groups {
		g := &c.Groups[i]
		if g.Iters < 1 || g.Iters > mostIters {
			bad("groups[%d].Iters: %d", i, g.Iters)
		}
		if g.Procs < 1 || g.Procs > mostProcs {
			bad("groups[%d].Procs: %d", i, g.Procs)
		}
		if math.IsNaN(g.Factor) || g.Factor < 0 || g.Factor > 1e6 {
			bad("groups[%d].FactorS: %v", i, g.Factor)
		}
	}
	return errors.Join(all...)
}

// CheckGroups says which groups put together what does not go together, by the published
// rules. Without it package mam repairs it.
func (c *Config) CheckGroups() error {
	var all []error
	for i := range c.Groups {
		g := &c.Groups[i]
		if not := g.Spawn & (mam.SpawnSingle | mam.SpawnMultiple); not != 0 && g.Spawn&mam.SpawnParallel != 0 {
			all = append(all, fmt.Errorf("groups[%d].Spawn_Strategy: %v does not go with %v", i, not, mam.SpawnParallel))
		}
		if (g.Method == mam.RMALock || g.Method == mam.RMALockall) && g.Strategy != mam.Thread && g.Strategy != mam.WaitDrains {
			all = append(all, fmt.Errorf("groups[%d].Redistribution_Strategy: method %v goes with 1 (%v) or 3 (%v), not with %v", i, g.Method, mam.Thread, mam.WaitDrains, g.Strategy))
		}
	}
	return errors.Join(all...)
}

// equalNeighbours reports whether some group is as large as the one before it.
func (c *Config) equalNeighbours() bool {
	for i := 1; i < len(c.Groups); i++ {
		if c.Groups[i].Procs == c.Groups[i-1].Procs {
			return true
		}
	}
	return false
}

// Iterations is how many all phases have.
func (c *Config) Iterations() (n int) {
	for _, p := range c.Phases {
		n += p.Iters
	}
	return n
}

// Sizes are the ranks of the groups: 2->4->2.
func (c *Config) Sizes() string {
	var list []string
	for _, g := range c.Groups {
		list = append(list, strconv.Itoa(g.Procs))
	}
	return strings.Join(list, "->")
}

// Key tells configurations apart.
func (c *Config) Key() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic("gompi: BUG: " + err.Error())
	}
	h := fnv.New64a()
	h.Write(b)
	return fmt.Sprintf("%016x", h.Sum64())
}

// module is how package mam is to change to a group. What is constant is there only with
// ADR; without it nothing is to move in the background.
func (c *Config) module(g *Group) mam.Config {
	m := mam.Config{Process: g.Process, Spawn: g.Spawn, Placement: g.Placement, Method: g.Method, Strategy: g.Strategy}
	if c.ADR == 0 {
		m.Strategy = mam.Blocking
	}
	return m
}
