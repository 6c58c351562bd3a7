// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"
	"testing"
	"time"
)

func TestFollow(t *testing.T) {
	f := &Follow{}
	step := func(n time.Duration, events []Event, want ...Decision) {
		t.Helper()
		if got := f.Step(n*time.Second, events...); !slices.Equal(got, want) {
			t.Errorf("after %d s: %v, want %v", n, got, want)
		}
	}
	step(0, []Event{Slots{Total: 4}})
	step(1, []Event{Arrived{Job{ID: 3, Size: 2}}, Arrived{Job{ID: 4, Size: 2}}}, Decision{3, 4, 2})
	step(2, []Event{Slots{Total: 6}, Slots{Total: 5}})
	step(3, []Event{Sized{3, 4}}, Decision{3, 5, 4})
	step(4, []Event{Sized{3, 4}}) // it has not happened: later, and later still
	if at, ok := f.Next(); !ok || at != 14*time.Second {
		t.Errorf("next at %v, %v", at, ok)
	}
	step(13, nil)
	step(14, nil, Decision{3, 5, 4})
	step(15, []Event{Sized{3, 4}})
	if at, ok := f.Next(); !ok || at != 35*time.Second {
		t.Errorf("next at %v, %v", at, ok)
	}
	step(16, []Event{Slots{Total: 5}})
	step(17, []Event{Slots{Total: 3}}, Decision{3, 3, 4})
	step(18, []Event{Sized{3, 3}, Slots{Total: 0}})
	step(19, []Event{Slots{Total: 1 << 20}}, Decision{3, MostProcesses, 3})
	step(20, []Event{Sized{3, 7}, Ended{3}})
	if at, ok := f.Next(); ok {
		t.Errorf("it wants to be called at %v after the end", at)
	}
}
