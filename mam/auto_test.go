// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"slices"
	"strings"
	"testing"

	"gompi/internal/resize/cost"
	"gompi/internal/resize/layout"
	"gompi/mpi"
	"gompi/mpitest"
)

// adoptionFor is what a process knows of a change in which the first ranks stay.
func adoptionFor(t *testing.T, c Config, ns, nd int, arrays ...*array) *reconfiguration {
	t.Helper()
	rc := &reconfiguration{config: c, times: Times{NS: ns, ND: nd}}
	for r := range min(ns, nd) {
		rc.stay = append(rc.stay, r)
	}
	for _, x := range arrays {
		if !x.Replicated {
			var err error
			if x.split, err = x.Rule.Over(ns); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := rc.planTransfers(arrays); err != nil {
		t.Fatal(err)
	}
	return rc
}

func blocks(n int64, mode Mode) *array {
	return &array{entry: entry{Name: "x", Bytes: 8, Mode: mode, Rule: layout.Layout{Kind: layout.Block, N: n}}}
}

// TestWork: what there is to do is that of the target with the most of it.
func TestWork(t *testing.T) {
	x := &inputs{Cores: 2, Hosts: 1, Transport: "shm"}
	for _, c := range []struct {
		ns, nd int
		arrays []*array
		want   cost.Work
	}{
		// Rank 1 of 2 gets the second half anew.
		{1, 2, []*array{blocks(100, Constant)}, cost.Work{Arrays: 1, Moved: 400, Fresh: 400}},
		// Rank 0 keeps half of all, and has new memory for all.
		{2, 1, []*array{blocks(100, Variable)}, cost.Work{Arrays: 1, Moved: 400, Fresh: 800, Late: 400}},
		{2, 4, []*array{blocks(100, Constant), blocks(100, Variable)}, cost.Work{Arrays: 2, Moved: 400, Fresh: 400, Late: 200}},
		// Cyclic: who keeps what is not counted.
		{1, 2, []*array{{entry: entry{Bytes: 1, Mode: Constant, Rule: layout.Layout{Kind: layout.Cyclic, N: 100, Block: 1}}}}, cost.Work{Arrays: 1, Moved: 50, Fresh: 50}},
		// Replicated data goes to newcomers alone.
		{1, 2, []*array{{entry: entry{Bytes: 1, Replicated: true, Mode: Variable, Rule: layout.Layout{N: 100}}}}, cost.Work{Arrays: 1, Moved: 100, Fresh: 100, Late: 100}},
		{2, 1, []*array{{entry: entry{Bytes: 1, Replicated: true, Rule: layout.Layout{N: 100}}}}, cost.Work{Arrays: 1}},
		{1, 2, nil, cost.Work{}},
	} {
		c.want.NS, c.want.ND, c.want.Cores, c.want.Hosts, c.want.Transport = c.ns, c.nd, 2, 1, "shm"
		if got := adoptionFor(t, Config{}, c.ns, c.nd, c.arrays...).work(x); got != c.want {
			t.Errorf("from %d to %d: %+v, want %+v", c.ns, c.nd, got, c.want)
		}
	}
}

// TestChoose: what is left to Auto is chosen by the model, what is not stays, and a model
// that says nothing gives what always works.
func TestChoose(t *testing.T) {
	slow := cost.Coefficients{Start: 1e6, Byte: 1, Omega: 1, Crowded: 1, Share: 1}
	quick := cost.Coefficients{Start: 1, Byte: 1}
	model := &cost.Model{Lines: map[string]map[string]cost.Coefficients{"shm": {"col": slow, "pull": slow, "rma-lock": quick, "p2p": quick}}}
	behind := &cost.Model{Lines: map[string]map[string]cost.Coefficients{"shm": {"col": quick, "pull": {Start: 1, Byte: 0.5, Omega: 1, Crowded: 1, Share: 1}}}}
	for _, c := range []struct {
		config Config
		model  *cost.Model
		on     string
		method Method
		when   Strategy
		why    string
	}{
		{Config{}, model, "shm", P2P, Blocking, "p2p at the commit"}, // which is named before rma-lock
		{Config{Strategy: Blocking}, model, "shm", P2P, Blocking, "p2p at the commit"},
		{Config{Method: COL}, model, "shm", COL, WaitDrains, "col in the background"},
		{Config{Method: COL, Strategy: Thread}, model, "shm", COL, Thread, ""},
		{Config{Strategy: Thread}, model, "shm", Pull, Thread, "pull in the background"},
		{Config{}, behind, "shm", Pull, WaitDrains, "pull in the background: 0.0 ms standing, 0.0 ms lost; not col"},
		{Config{}, model, "tcp", COL, Blocking, "nothing is known"},
		{Config{Method: Pull}, model, "tcp", Pull, Blocking, "nothing is known"},
		{Config{Strategy: WaitDrains}, model, "tcp", COL, WaitDrains, "nothing is known"},
	} {
		rc := adoptionFor(t, c.config, 1, 2, blocks(100, Constant))
		why := rc.chooseAuto(&inputs{Cores: 2, Hosts: 1, Transport: c.on, Model: c.model})
		if rc.config.Method != c.method || rc.config.Strategy != c.when || !strings.Contains(why, c.why) || c.why == "" && why != "" {
			t.Errorf("%+v on %s: %v and %v, %q; want %v and %v, %q", c.config, c.on, rc.config.Method, rc.config.Strategy, why, c.method, c.when, c.why)
		}
	}
	// Of Builtin each pair has an answer, on each transport.
	for on := range cost.Builtin.Lines {
		rc := adoptionFor(t, Config{}, 2, 3, blocks(1<<20, Constant))
		if why := rc.chooseAuto(&inputs{Cores: 2, Hosts: 1, Transport: on}); !strings.Contains(why, "8 MiB") && !strings.Contains(why, "MiB, 1 data, from 2 to 3 ranks") || !slices.Contains(autoMethods, rc.config.Method) {
			t.Errorf("%s: %v, %q", on, rc.config, why)
		}
	}
}

// What Auto goes by is known before the first message, when Init asks.
func TestLook(t *testing.T) {
	for _, transport := range []string{"inproc", "shm", "tcp", "shm,tcp"} {
		for _, ranks := range []int{1, 2} {
			mpitest.Run(t, ranks, func(t *mpitest.T, world *mpi.Comm) {
				x, err := findInputs(world)
				if want, _, _ := strings.Cut(transport, ","); x.Transport != want || x.Hosts != 1 || x.Cores < 1 || err != nil {
					t.Errorf("%d ranks over %s: %+v, %v", ranks, transport, x, err)
				}
			}, mpitest.Transport(transport))
		}
	}
}
