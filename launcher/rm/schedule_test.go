// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseSchedule(t *testing.T) {
	got, err := ParseSchedule("10s:+4, 20:-2,1m30s:=8,1m30s:+1")
	want := []Moment{{At: 10 * time.Second, By: 4}, {At: 20 * time.Second, By: -2}, {At: 90 * time.Second, To: 8}, {At: 90 * time.Second, By: 1}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "10s", "10s:", "10s:4", "10s:+", "10s:+0", "10s:+x", "x:+1", "-1s:+1", "20s:+1,10s:+1", "1s:+70000", "NaN:+1", "1e99:+1", "1s:+1,"} {
		if got, err := ParseSchedule(bad); err == nil || !strings.Contains(err.Error(), errSchedule.Error()) {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

func FuzzParseSchedule(f *testing.F) {
	f.Add("10s:+4,20s:-2,1m:=8")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseSchedule(text)
		if (err == nil) != (len(list) > 0) {
			t.Errorf("%q: %v, %v", text, list, err)
		}
		for i, m := range list {
			if m.At < 0 || i > 0 && m.At < list[i-1].At || (m.By == 0) == (m.To == 0) || m.To < 0 {
				t.Errorf("%q has %+v", text, m)
			}
		}
	})
}

func TestSchedule(t *testing.T) {
	list, err := ParseSchedule("10:+4,20:-2,21:+8,30:=3,40:-9")
	if err != nil {
		t.Fatal(err)
	}
	s := NewSchedule(list)
	if at, ok := s.Next(); ok || len(s.Step(time.Hour)) > 0 {
		t.Errorf("without a job it wants to be called at %v", at)
	}
	sec := func(n int) time.Duration { return time.Hour + time.Duration(n)*time.Second }
	step := func(n int, events []Event, want ...Decision) {
		t.Helper()
		if got := s.Step(sec(n), events...); !slices.Equal(got, want) {
			t.Errorf("after %d s: %v, want %v", n, got, want)
		}
	}
	next := func(n int) {
		t.Helper()
		if at, ok := s.Next(); ok != (n > 0) || ok && at != sec(n) {
			t.Errorf("next at %v, %v, want %v", at, ok, sec(n))
		}
	}
	step(0, []Event{Arrived{Job{ID: 5, Size: 2}}, Arrived{Job{ID: 6, Size: 9}}})
	next(10)
	step(9, []Event{Sized{6, 3}})
	step(10, nil, Decision{5, 6, 2})
	next(0)
	step(22, nil) // two are due, and wait
	step(23, []Event{Sized{5, 6}}, Decision{5, 12, 6})
	step(24, []Event{Sized{5, 6}}) // it has not happened
	next(30)
	step(25, []Event{Sized{5, 3}}) // somebody else
	step(30, nil)                  // it has 3
	step(41, nil, Decision{5, 1, 3})
	if s.Done() {
		t.Error("it is done in the midst")
	}
	step(42, []Event{Ended{5}})
	next(0)
}
