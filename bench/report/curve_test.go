// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

// TestSetCurve: a fall that only one state has is seen there, one of a few per cent is not
// told of.
func TestSetCurve(t *testing.T) {
	near, far := []float64{1, 2, 1.9, 3}, []float64{4, 8, 6, 7}
	rs := make([]Result, len(near))
	points := make([][]Batch, len(near))
	for i := range rs {
		for range CurveBatches {
			points[i] = append(points[i], Batch{near[i], 50, 50}, Batch{far[i], 300, 300}, Batch{100, 50, 300})
		}
		rs[i] = Result{Bench: "curve", Bytes: int64(1 << i), Batches: points[i]}
	}
	if !BothStates(points) || BothStates(append(points, points[0][:CurveBatches])) {
		t.Error("both states are not known by the number of batches")
	}
	SetCurve(rs)
	for i, want := range []Curve{{}, {}, {FallNear: 0.05, FallFar: 0.25}, {FallFar: 0.125}} {
		got := *rs[i].Curve
		if got.Fall != 0 || math.Abs(got.FallNear-want.FallNear) > 1e-9 || math.Abs(got.FallFar-want.FallFar) > 1e-9 {
			t.Errorf("size %d: %+v, want %+v", rs[i].Bytes, got, want)
		}
		if rs[i].UsecNear != near[i] || rs[i].UsecFar != far[i] {
			t.Errorf("size %d: %+v", rs[i].Bytes, rs[i].States)
		}
	}
	var b bytes.Buffer
	for _, r := range rs {
		if err := Row(&b, r); err != nil {
			t.Fatal(err)
		}
	}
	if text := b.String(); !strings.Contains(text, "falls far 25%") || !strings.Contains(text, "falls far 12%") || strings.Contains(text, "near 5%") {
		t.Errorf("rows:\n%s", text)
	}
	b.Reset()
	if err := Write(&b, rs[2]); err != nil {
		t.Fatal(err)
	}
	back, err := Read("x", &b)
	if err != nil || *back[0].Curve != *rs[2].Curve {
		t.Errorf("%+v, %v", back, err)
	}
	if _, err := Read("x", strings.NewReader(`{"bench":"curve","bytes":1,"curve":{"fall":2}}`)); err == nil {
		t.Error("a fall of 2 was taken")
	}
}
