// SPDX-License-Identifier: Apache-2.0

package testlab

import (
	"testing"
	"time"
)

func TestSlower(t *testing.T) {
	for _, c := range []struct {
		start, call time.Duration
		want        float64
		rounds      int // of 10
	}{
		{800 * time.Microsecond, 80 * time.Nanosecond, 1, 10},
		{2 * time.Millisecond, 200 * time.Nanosecond, 1, 10},
		{6 * time.Millisecond, 100 * time.Nanosecond, 3, 3},
		{time.Millisecond, 1200 * time.Nanosecond, 4, 2},
		{100 * time.Millisecond, 0, 4, 2},
	} {
		if got := slower(c.start, c.call); got != c.want || fewer(10, got) != c.rounds {
			t.Errorf("start %v, call %v: %v times as slow, %d rounds; want %v, %d", c.start, c.call, got, fewer(10, got), c.want, c.rounds)
		}
	}
	if s := slowness(); s < 1 || s > most {
		t.Errorf("this machine is %v times as slow as usual", s)
	}
}

func TestRounds(t *testing.T) {
	t.Setenv("GOMPI_TEST", "long")
	if Rounds(3, 300) != 300 || Every(3) != 1 {
		t.Errorf("long forms: %d rounds, one case of %d", Rounds(3, 300), Every(3))
	}
	if !Takes(1, 3) {
		t.Error("long forms: a case is left out")
	}
	t.Setenv("GOMPI_TEST", "")
	if !Takes(0, 3) || Takes(1, 3) {
		t.Errorf("short forms: case 0 is taken: %v, case 1: %v", Takes(0, 3), Takes(1, 3))
	}
	if r, e := Rounds(3, 300), Every(3); r < 1 || r > 3 || e < 3 {
		t.Errorf("short forms: %d rounds, one case of %d", r, e)
	}
}
