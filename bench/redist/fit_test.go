// SPDX-License-Identifier: Apache-2.0

package redist

import (
	"math"
	"testing"

	"gompi/bench/report"
)

func result(from, to int, bytes int64, method, strategy string, warm, touch, omega float64) report.Result {
	return report.Result{
		Bench: "redist", Transport: "shm", Ranks: from, Bytes: bytes,
		Redist: &report.Redist{From: from, To: to, Method: method, Strategy: strategy, WarmMsec: warm, TouchMsec: touch, Omega: omega},
	}
}

// TestFitOfResults: from 1 to 2 ranks half of the data moves, and as much is new memory.
func TestFitOfResults(t *testing.T) {
	const mb = 1 << 20
	rs := []report.Result{
		{Bench: "latency"},
		result(1, 2, 2*mb, "col", "blocking", 1.2, 0.5, 0),
		result(1, 2, 200*mb, "col", "blocking", 21, 50, 0),
		result(1, 2, 200*mb, "col", "wd", 30, 50, 1.3),
		result(1, 2, 200*mb, "inplace", "blocking", 0.1, 50, 0),
		result(2, 4, 200*mb, "pull", "wd", 300, 50, 1.1),
	}
	m, err := Fit(rs, 2)
	if err != nil {
		t.Fatal(err)
	}
	col := m.Lines["shm"]["col"]
	// 1200 us = start + byte*1 MiB, 21000 us = start + byte*100 MiB.
	if math.Abs(col.Start+col.Array-1000) > 1 || math.Abs(col.Byte-0.2e3*1e3/mb) > 1e-3 || col.Omega != 1.3 {
		t.Errorf("col: %+v", col)
	}
	if want := 0.5e6 / mb; math.Abs(m.Touch-want) > 0.01 {
		t.Errorf("a byte of new memory takes %v ns, want %v", m.Touch, want)
	}
	if pull := m.Lines["shm"]["pull"]; pull.Crowded != 1.1 || pull.Share >= 0.5 {
		t.Errorf("pull, with four ranks on two processors: %+v", pull)
	}
	if _, ok := m.Lines["shm"]["inplace"]; ok {
		t.Error("what does not move has a line")
	}
	if _, err := Fit(rs[:1], 2); err == nil {
		t.Error("a model of nothing")
	}
	if _, err := Fit([]report.Result{result(0, 2, mb, "col", "blocking", 1, 1, 0)}, 2); err == nil {
		t.Error("a model of no ranks")
	}
}
