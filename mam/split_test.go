// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"errors"
	"fmt"
	"testing"

	"gompi/mam"
	"gompi/mpi"
)

// What Locate says of an element, Runs and Count say, too.
func TestSplit(t *testing.T) {
	for _, l := range []mam.Layout{layouts.x, layouts.deal, layouts.grid, layouts.vals, layouts.few, layouts.none, mam.Rows(weights)} {
		for ranks := 1; ranks <= 5; ranks++ {
			s, err := l.Over(ranks)
			if err != nil || s.Ranks() != ranks {
				t.Fatalf("%v over %d ranks: %d, %v", l, ranks, s.Ranks(), err)
			}
			seen := 0
			for r := range ranks {
				local := 0
				for at, n := range s.Runs(r) {
					for i := at; i < at+n; i++ {
						if who, where := s.Locate(i); who != r || where != local {
							t.Fatalf("%v over %d ranks: element %d is %d of rank %d, not %d of rank %d", l, ranks, i, where, who, local, r)
						}
						local++
					}
				}
				if local != s.Count(r) || local != l.Count(ranks, r) {
					t.Fatalf("%v over %d ranks: rank %d has %d elements, %d counted", l, ranks, r, local, s.Count(r))
				}
				seen += local
			}
			if seen != l.Elems() || s.Count(-1) != 0 || s.Count(ranks) != 0 {
				t.Fatalf("%v over %d ranks: %d elements", l, ranks, seen)
			}
			for range s.Runs(ranks) {
				t.Fatalf("%v: a rank too many has elements", l)
			}
		}
	}
	if _, err := mam.Block(-1).Over(2); !errors.Is(err, mpi.ErrArg) {
		t.Error(err)
	}
	if _, err := mam.Block(3).Over(0); !errors.Is(err, mpi.ErrArg) {
		t.Error(err)
	}
	for _, c := range []struct {
		s    mam.Split
		i    int
		want string
	}{{mam.Split{}, 0, "mam: element 0 of 0"}, {over(t, mam.Block(3), 2), 3, "mam: element 3 of 3"}, {over(t, mam.Block(3), 2), -1, "mam: element -1 of 3"}} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != c.want {
					t.Errorf("panic %q, want %q", got, c.want)
				}
			}()
			c.s.Locate(c.i)
		}()
	}
}

func over(t *testing.T, l mam.Layout, ranks int) mam.Split {
	t.Helper()
	s, err := l.Over(ranks)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
