// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gompi/bench/report"
	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/collectives/sim"
)

func predict(t *testing.T, s Simulation) []Predicted {
	t.Helper()
	s.Machine = sim.DefaultMachine()
	var all []Predicted
	seen, total := 0, 0
	err := s.Run(context.Background(), func(what string, done, of int) {
		seen, total = seen+1, of
		if done < 0 || done >= of || what == "" {
			t.Errorf("%q: %d of %d", what, done, of)
		}
	}, func(rows []Predicted) error {
		all = append(all, rows...)
		return nil
	})
	if err != nil || seen != len(all) || seen != total {
		t.Fatalf("%d rows, %d of %d announced: %v", len(all), seen, total, err)
	}
	return all
}

func TestSimulation(t *testing.T) {
	rows := predict(t, Simulation{Op: collectives.OpAllgather, Ranks: []int{6, 8}, Bytes: []int{7, 4096}})
	points := map[string][]Predicted{}
	for _, r := range rows {
		points[fmt.Sprint(r.Ranks, r.Bytes)] = append(points[fmt.Sprint(r.Ranks, r.Bytes)], r)
	}
	if len(points) != 4 || !slices.IsSortedFunc(rows, func(a, b Predicted) int { return a.Ranks - b.Ranks }) {
		t.Fatalf("%+v", rows)
	}
	for at, rs := range points {
		selected, fastest := 0, 0
		for _, r := range rs {
			if r.Selected {
				selected++
			}
			if r.Usec == r.Best {
				fastest++
			}
			if r.Bench != "simulate" || r.Op != "allgather" || r.Usec < r.Best || r.Best <= 0 || r.Messages <= 0 || r.From != nil {
				t.Errorf("%s: %+v", at, r)
			}
			if r.Moved != int64(r.Ranks)*int64(r.Ranks-1)*r.Bytes {
				t.Errorf("%s: %s moves %d bytes", at, r.Algorithm, r.Moved)
			}
			if r.Algorithm == "bruck" && r.Scratch != int64(r.Ranks)*r.Bytes {
				t.Errorf("%s: bruck has %d bytes of scratch", at, r.Scratch)
			}
		}
		if selected != 1 || fastest < 1 {
			t.Errorf("%s: %d selected, %d fastest", at, selected, fastest)
		}
		power := slices.ContainsFunc(rs, func(r Predicted) bool { return r.Algorithm == "doubling" })
		if want := rs[0].Ranks == 8; power != want {
			t.Errorf("%s: doubling there: %v", at, power)
		}
	}
}

func TestSimulationErrors(t *testing.T) {
	good := Simulation{Op: collectives.OpBcast, Ranks: []int{4}, Bytes: []int{8}, Machine: sim.DefaultMachine()}
	run := func(change func(*Simulation)) error {
		s := good
		change(&s)
		return s.Run(context.Background(), nil, func([]Predicted) error { return nil })
	}
	for want, change := range map[string]func(*Simulation){
		"no algorithm \"x\"": func(s *Simulation) { s.Algorithms = []string{"x"} },
		"none of these":      func(s *Simulation) { s.Algorithms, s.Ranks = []string{"scatter-doubling"}, []int{3, 6} },
		"0 ranks":            func(s *Simulation) { s.Ranks = []int{0} },
		"root 4 of 4":        func(s *Simulation) { s.Root = 4 },
		"-1 ranks on a node": func(s *Simulation) { s.PerNode = -1 },
		"no time":            func(s *Simulation) { s.Machine.Gamma = -1 },
	} {
		if err := run(change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	stop := errors.New("stop")
	if err := good.Run(context.Background(), nil, func([]Predicted) error { return stop }); err != stop {
		t.Errorf("emit's error became %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stop)
	if err := good.Run(ctx, nil, func([]Predicted) error { return nil }); err != stop {
		t.Errorf("the end of ctx became %v", err)
	}
}

func TestPredictedTable(t *testing.T) {
	rows := []Predicted{
		{Op: "allreduce", Algorithm: "ring", Ranks: 100000, Bytes: 4096, Usec: 360188, Best: 36.02, Steps: 199998, Scratch: 5 << 20, From: []int{390, 781}},
		{Op: "allreduce", Algorithm: "doubling", Ranks: 100000, Bytes: 4096, Usec: 36.02, Best: 36.02, Steps: 18, Messages: 1117504, Scratch: 8, Selected: true},
	}
	var b strings.Builder
	err := errors.Join(PredictedHeader(&b), PredictedRows(&b, rows), PredictedNotes(&b, rows))
	want := `   ranks    bytes  algorithm                  usec    x best    steps    messages   scratch
  100000       4K  ring               ~     360188     10000   199998           -     5.00M
  100000       4K  doubling                   36.0      1.00       18     1117504         8 *
~ extrapolated: each rank sends to so many others that only groups of up to 781 ranks were simulated
* what the built-in table chooses
`
	if err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	if err := PredictedJSON(&b, rows); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	for i, line := range lines {
		var r Predicted
		if err := json.Unmarshal([]byte(line), &r); err != nil || fmt.Sprint(r) != fmt.Sprint(rows[i]) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if !strings.Contains(lines[0], `"extrapolated_from":[390,781]`) || strings.Contains(lines[1], "extrapolated") {
		t.Error(b.String())
	}
}

func TestFigureOf(t *testing.T) {
	for _, x := range []struct {
		s    Simulation
		want report.Axis
	}{
		{Simulation{Op: collectives.OpBcast, Ranks: []int{4}, Bytes: []int{8, 64, 512}}, report.Axis{Label: "size in bytes", Binary: true, Bytes: true}},
		{Simulation{Op: collectives.OpBcast, Ranks: []int{4, 8, 64}, Bytes: []int{8}}, report.Axis{Label: "ranks", Binary: true}},
		{Simulation{Op: collectives.OpBarrier, Ranks: []int{4, 8, 64}}, report.Axis{Label: "ranks", Binary: true}},
	} {
		f, err := FigureOf(predict(t, x.s))
		if err != nil || f.X != x.want {
			t.Fatalf("%+v: %v\n%+v", x.s, err, f)
		}
		for _, g := range selection.All() {
			if g.Op == x.s.Op && !g.TwoLevel && !g.Inter && !slices.ContainsFunc(f.Series, func(s report.Series) bool { return s.Name == g.Name && len(s.X) > 1 }) {
				t.Errorf("%+v: no line for %s", x.s, g.Name)
			}
		}
	}
	both := predict(t, Simulation{Op: collectives.OpBcast, Ranks: []int{4, 8}, Bytes: []int{8, 16}})
	if _, err := FigureOf(both); err == nil {
		t.Error("two sizes and two numbers of ranks in one plot")
	}
	if _, err := FigureOf(nil); err == nil {
		t.Error("a plot of nothing")
	}
}

func TestWriteTrace(t *testing.T) {
	s := Simulation{Op: collectives.OpBcast, Algorithms: []string{"binomial"}, Ranks: []int{4}, Bytes: []int{101}, Root: 1,
		Machine: sim.Machine{Net: sim.LogGP{Latency: 1, Overhead: 0.25, Gap: 0.5, PerByte: 0.01}}}
	var b strings.Builder
	err := s.Trace(func(c *sim.Call, r sim.Result, ms []sim.Message) error { return WriteTrace(&b, c, r, ms) })
	want := `# bcast/binomial: 4 ranks, 101 bytes, 5.00 us
rank 1: send 101b to 3 at 0.000, received at 2.500
rank 1: send 101b to 2 at 0.250, received at 4.000
rank 3: send 101b to 0 at 2.500, received at 5.000
`
	if err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
	s.Ranks = []int{MaxTraceRanks + 1}
	if err := s.Trace(nil); err == nil {
		t.Error("a trace too long to read")
	}
}
