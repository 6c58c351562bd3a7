// SPDX-License-Identifier: Apache-2.0

package redist

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/bench/report"
	"gompi/mam"
)

func resultOf(impl string, from, to int, method, strategy string, msec, warm, iterations, omega float64) report.Result {
	r := report.Result{Bench: "redist", Transport: impl, Ranks: from, Bytes: 1 << 20}
	r.SetRedist([]report.Redist{{
		From: from, To: to, Method: method, Strategy: strategy, Msec: msec, WarmMsec: warm, TouchMsec: msec - warm,
		MovedBytes: 500, LeastBytes: 500, Iterations: iterations, Omega: omega, FromIterMsec: 10, ToIterMsec: 5,
	}})
	return r
}

func TestPlan(t *testing.T) {
	done := []report.Result{
		resultOf("shm", 1, 2, "col", "blocking", 1, 1, 0, 0), resultOf("shm", 2, 1, "col", "wd", 1, 1, 1, 1), resultOf("shm", 2, 1, "pull", "wd", 1, 1, 1, 1),
		{Bench: "barrier", Bytes: 1 << 20},
	}
	both := []mam.Method{mam.COL, mam.Pull}
	got := Plan([]int{4, 2, 1, 2}, both, 1<<20+3, done)
	want := []Job{{1, 2, both[1:]}, {1, 4, both}, {2, 4, both}, {4, 1, both}, {4, 2, both}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Plan([]int{1, 2}, both, 1<<21, done); len(got) != 2 || got[0].String() != "1->2 col,pull" {
		t.Errorf("%v", got)
	}
	v, _ := Variants("pull,col", "all")
	if got := Methods(v); !slices.Equal(got, []mam.Method{mam.Pull, mam.COL}) {
		t.Errorf("%v", got)
	}
}

// Of a job that fails each method is tried by itself, and the others go on.
func TestMatrix(t *testing.T) {
	bad := errors.New("bad")
	var ran []string
	var kept, told int
	both := []mam.Method{mam.COL, mam.Pull}
	run := func(_ context.Context, j Job, tell func(float64, string)) ([]report.Result, error) {
		ran = append(ran, j.String())
		tell(0.5, "half")
		if j.To == 2 && slices.Contains(j.Methods, mam.Pull) {
			return nil, bad
		}
		return []report.Result{{}}, nil
	}
	keep := func(rs []report.Result) error { kept += len(rs); return nil }
	tell := func(done, left time.Duration, what string) {
		if told++; done < 0 || left < 0 || what == "" {
			t.Errorf("%v, %v, %q", done, left, what)
		}
	}
	err := Matrix(t.Context(), []Job{{1, 2, both}, {2, 1, both}}, run, keep, tell)
	want := []string{"1->2 col,pull", "1->2 col", "1->2 pull", "2->1 col,pull"}
	if !slices.Equal(ran, want) || kept != 2 || told != 5 || !errors.Is(err, bad) || !strings.Contains(err.Error(), "1->2 pull") || strings.Contains(err.Error(), "col") {
		t.Errorf("ran %q, kept %d, told %d, %v", ran, kept, told, err)
	}
	// Who is interrupted tries nothing more.
	ctx, stop := context.WithCancelCause(t.Context())
	ran = nil
	err = Matrix(ctx, []Job{{1, 2, both}, {2, 1, both}}, func(_ context.Context, j Job, _ func(float64, string)) ([]report.Result, error) {
		ran = append(ran, j.String())
		stop(bad)
		return nil, errors.New("killed")
	}, keep, tell)
	if len(ran) != 1 || err != bad {
		t.Errorf("%q, %v", ran, err)
	}
}

func TestTables(t *testing.T) {
	rs := []report.Result{
		resultOf("shm", 2, 4, "col", "blocking", 100, 20, 0, 0),
		resultOf("gompi/shm", 2, 4, "col", "blocking", 80, 30, 0, 0),
		resultOf("gompi/shm", 2, 4, "p2p", "blocking", 90, 12, 0, 0),
		resultOf("gompi/shm", 2, 4, "inplace", "blocking", 5, 1, 0, 0),
		resultOf("gompi/shm", 2, 4, "inplace", "blocking", 7, 1, 0, 0),
		resultOf("shm", 2, 4, "pull", "blocking", 45, 15, 0, 0),
		resultOf("shm", 2, 4, "pull", "wd", 180, 150, 12, 1.25),
		resultOf("shm", 2, 4, "col", "t", 140, 130, 6, 1.5),
		resultOf("shm", 4, 2, "col", "blocking", 50, 20, 0, 0),
		resultOf("openmpi/shm", 2, 4, "col", "blocking", 200, 30, 0, 0),
		resultOf("openmpi/shm", 2, 4, "rma-lock", "blocking", 100, 50, 0, 0),
		resultOf("mpich/shm", 2, 4, "col", "blocking", 150, 25, 0, 0),
		{Bench: "barrier"},
	}
	var b strings.Builder
	if err := Tables(&b, rs); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"### Blocking: msec cold / warm\n\n| ranks | col-blocking | pull-blocking |\n|---|---:|---:|\n| 2 -> 4 | 100 / 20.0 | 45.0 / 15.0 |\n| 4 -> 2 | 50.0 / 20.0 | - |\n",
		"### In the background: msec cold / warm\n\n| ranks | col-t | pull-wd |\n|---|---:|---:|\n| 2 -> 4 | 140 / 130 | 180 / 150 |\n",
		"### omega, without T\n\n| ranks | pull-wd |\n|---|---:|\n| 2 -> 4 | 1.25 |\n",
		"### omega of T\n\n| ranks | col-t |\n|---|---:|\n| 2 -> 4 | 1.50 |\n",
		"| 2 -> 4 | 6.00 | 12.00 |\n",
		// N* = 6, t_ND = 5: 45 + 30; in the background 140. Equal: 45 + 60 and 140 + 30, or 180.
		"| 2 -> 4 | 75.0 (pull-blocking) | 140 (col-t) | 105 (pull-blocking) | 170 (col-t) | 1.62 |\n",
		"in 0 of 1 pairs",
		"| 2 -> 4 | 500 | 500 |\n",
		"### Beside peers, cold, blocking, msec\n\n| ranks | gompi | mpich | openmpi | by the best peer | goal | inplace | by the best peer | goal |\n",
		"| 2 -> 4 | 80.0 (col) | 150 (col) | 100 (rma-lock) | 0.80 | <= 0.5 | 6.00 (inplace) | 0.06 | <= 0.3 |\n",
		"| 2 -> 4 | 12.0 (p2p) | 25.0 (col) | 30.0 (col) | 0.48 | <= 0.8 | 1.00 (inplace) | 0.04 | <= 0.1 |\n",
		"| ranks | p2p | rma-lock | rma-lockall | pull | inplace |\n|---|---:|---:|---:|---:|---:|\n| 2 -> 4 | - | - | - | 0.45 | - |\n| 4 -> 2 | - | - | - | - | - |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no\n%sin\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := Tables(&b, nil); err != nil || b.Len() != 0 {
		t.Errorf("of nothing: %q, %v", b.String(), err)
	}
}
