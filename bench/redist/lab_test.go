// SPDX-License-Identifier: Apache-2.0

package redist

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gompi/bench/report"
	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

func TestVariants(t *testing.T) {
	got, err := Variants("pull,COL, pull", "wd,blocking")
	want := []Variant{{mam.Pull, mam.WaitDrains}, {mam.Pull, mam.Blocking}, {mam.COL, mam.WaitDrains}, {mam.COL, mam.Blocking}}
	if err != nil || !slices.Equal(got, want) || want[0].String() != "pull-wd" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := Variants("all", "all"); err != nil || len(got) != 24 || got[0] != want[3] {
		t.Errorf("%v, %v", got, err)
	}
	for _, c := range [][2]string{{"", "wd"}, {"auto", "wd"}, {"col", "x"}} {
		if got, err := Variants(c[0], c[1]); err == nil {
			t.Errorf("%v: %v", c, got)
		}
	}
}

func TestOptions(t *testing.T) {
	o := Options{From: 1, To: 2, Bytes: 8}
	if err := o.validate(); err != nil || o.Rounds != DefaultRounds || o.Iteration != DefaultIteration || len(o.Variants) != 24 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, o := range []Options{
		{To: 2, Bytes: 8}, {From: 2, To: 2, Bytes: 8}, {From: 1, To: mostRanks + 1, Bytes: 8}, {From: 1, To: 2, Bytes: 7},
		{From: 1, To: 2, Bytes: 8, Rounds: -1}, {From: 1, To: 2, Bytes: 8, Iteration: -1},
	} {
		if o.validate() == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// TestRun measures tiny redistributions, and looks at what rank 0 gets.
func TestRun(t *testing.T) {
	for _, pair := range [][2]int{{1, 3}, {3, 2}} {
		t.Run(fmt.Sprint(pair), func(t *testing.T) {
			var mu sync.Mutex
			var rs []report.Result
			var notes []string
			progress := 0
			o := Options{From: pair[0], To: pair[1], Bytes: 80004, Rounds: 2, Iteration: time.Millisecond / 2}
			o.Variants, _ = Variants("col,pull,p2p,inplace", "blocking,wd")
			o.Variants = append(o.Variants, Variant{mam.Pull, mam.NonBlocking}) // goes as wd, once
			mpitest.Run(t, o.From, func(t *mpitest.T, world *mpi.Comm) {
				o := o
				o.Note = func(text string) {
					mu.Lock()
					defer mu.Unlock()
					notes = append(notes, text)
				}
				o.Progress = func(done, all int, next string) {
					mu.Lock()
					defer mu.Unlock()
					if progress++; done >= all || all != 2*len(o.Variants) || next == "" {
						t.Errorf("%d of %d, %q", done, all, next)
					}
				}
				err := Run(t.Context(), world, o, func(r report.Result) error {
					rs = append(rs, r)
					return nil
				})
				if err != nil && !errors.Is(err, mpi.ErrLeaving) {
					t.Fatal(err)
				}
			})
			var names []string
			for _, r := range rs {
				x := r.Redist
				names = append(names, x.Method+"-"+x.Strategy)
				if r.Bench != "redist" || r.Transport != "inproc" || r.Bytes != 80000 || r.Ranks != o.From || x.From != o.From || x.To != o.To || x.Rounds != 2 ||
					!(0 < x.WarmMsec && x.WarmMsec <= x.Msec && 0 <= x.TouchMsec && 0 < x.FromIterMsec && 0 < x.ToIterMsec) ||
					x.Method != "inplace" && x.MovedBytes != x.LeastBytes || x.LeastBytes < 80000/5 || x.Background() != (x.Iterations > 0) || x.Background() != (x.Omega > 0) {
					t.Errorf("%+v, %+v", r, x)
				}
			}
			if !slices.Contains(names, "col-blocking") || !slices.Contains(names, "p2p-blocking") || !slices.Contains(names, "pull-blocking") || strings.Count(fmt.Sprint(names), "pull-wd") != 1 {
				t.Errorf("results of %v", names)
			}
			for i, name := range names {
				if slices.Contains(names[:i], name) {
					t.Errorf("%s is told twice", name)
				}
			}
			if !strings.Contains(strings.Join(notes, "\n"), "it goes as pull-wd, which is measured") || progress < 2*len(names) {
				t.Errorf("notes %q, %d times progress", notes, progress)
			}
		})
	}
}

// A job of another size than the one that is to change is refused on all ranks.
func TestSize(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		err := Run(t.Context(), world, Options{From: 1, To: 2, Bytes: 8}, func(report.Result) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "has 2 ranks and should begin with 1") {
			t.Errorf("%v", err)
		}
	})
}
