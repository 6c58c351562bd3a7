// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// batchesOf are n batches of a state, with probes around one.
func batchesOf(n int, usec, probe float64) (list []Batch) {
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	for range n {
		list = append(list, Batch{usec, probe * (1 + 0.2*rnd.Float64()), probe * (1 + 0.2*rnd.Float64())})
	}
	return list
}

// spread are n batches whose probes lie evenly between two.
func spread(n int, lo, hi float64) (list []Batch) {
	for i := range n {
		p := lo + (hi-lo)*float64(i)/float64(n)
		list = append(list, Batch{1, p, p})
	}
	return list
}

func TestStates(t *testing.T) {
	near, far := batchesOf(60, 0.13, 55), batchesOf(30, 0.36, 310)
	disturbed := []Batch{{9, 55, 9000}, {9, 9000, 9000}, {5, 60, 310}}
	for _, c := range []struct {
		name  string
		list  []Batch
		two   bool
		wants States
	}{
		{"none", nil, false, States{}},
		{"near", near, false, States{}},
		{"near, disturbed", append(disturbed[:2:2], near...), false, States{}},
		{"hardly any far", append(far[:2:2], near...), false, States{}},
		{"both", append(append(disturbed[:1:1], far...), near...), true, States{UsecNear: 0.13, UsecFar: 0.36, BatchesNear: 60, BatchesFar: 30}},
		{"both, changing", append(append(disturbed[2:], far...), near...), true, States{UsecNear: 0.13, UsecFar: 0.36, BatchesNear: 60, BatchesFar: 30}},
		{"both, some in between", append(append(spread(3, 120, 250), batchesOf(300, 0.36, 310)...), batchesOf(600, 0.13, 55)...), true, States{UsecNear: 0.13, UsecFar: 0.36, BatchesNear: 601, BatchesFar: 302}},
		{"no gap", append(append(spread(60, 60, 310), far...), near...), false, States{}},
		{"a small gap", append(batchesOf(30, 1, 80), near...), false, States{}},
	} {
		cut := Cut(c.list)
		if (cut > 0) != c.two || cut > 0 && (cut < 66 || cut > 310) {
			t.Errorf("%s: cut at %v", c.name, cut)
			continue
		}
		if !c.two {
			continue
		}
		s := SplitStates(c.list, cut)
		if s.ProbeNear < 55 || s.ProbeNear > 66 || s.ProbeFar < 310 || s.ProbeFar > 372 {
			t.Errorf("%s: probes %v, %v", c.name, s.ProbeNear, s.ProbeFar)
		}
		s.ProbeNear, s.ProbeFar = 0, 0
		if s != c.wants {
			t.Errorf("%s: %+v, want %+v", c.name, s, c.wants)
		}
	}
	if s := SplitStates(near, 1000); s.BatchesFar != 0 || s.UsecFar != 0 || s.BatchesNear != 60 {
		t.Errorf("a state that did not come: %+v", s)
	}
}

// TestStatesAsJSON: batches and states are lines' own fields, which come back.
func TestStatesAsJSON(t *testing.T) {
	r := Result{Bench: "latency", Ranks: 2, Usec: 1, Batches: []Batch{{0.25, 55, 56.5}}, States: &States{UsecNear: 0.25, BatchesNear: 1, ProbeNear: 55}}
	var b strings.Builder
	if err := Write(&b, r); err != nil || !strings.Contains(b.String(), `"usec_near":0.25,"usec_far":0,"batches_near":1,`) || !strings.Contains(b.String(), `"batches":[[0.25,55,56.5]]`) {
		t.Errorf("%v: %s", err, b.String())
	}
	back, err := Read("x", strings.NewReader(b.String()))
	if err != nil || len(back) != 1 || back[0].States == nil || *back[0].States != *r.States || len(back[0].Batches) != 1 || back[0].Batches[0] != r.Batches[0] {
		t.Errorf("%+v, %v", back, err)
	}
	if b, _ := json.Marshal(Result{}); strings.Contains(string(b), "near") || strings.Contains(string(b), "batches") {
		t.Errorf("without states: %s", b)
	}
	for _, bad := range []string{`"batches":[[1,2]]`, `"batches":[[1,2,0]]`, `"batches":[[-1,2,3]]`, `"batches":[3]`, `"usec_near":-1`} {
		if _, err := Read("x", strings.NewReader(`{"bench":"latency","ranks":2,`+bad+"}")); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	var row strings.Builder
	if err := Row(&row, r); err != nil || !strings.Contains(row.String(), "near 0.250 (1 batches, probe 55.0 ns), far 0 (0, 0 ns)") {
		t.Errorf("%v: %s", err, row.String())
	}
}
