// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"
	"time"
)

func TestQueues(t *testing.T) {
	for _, p := range Policies() {
		w := newWorld(t, p, 8)
		// 1 runs for a minute at most; 2 needs more than is left, 3 fits for a short, 4
		// for a long time.
		w.tell(rigid(1, 5, time.Minute))
		w.tell(rigid(2, 6, time.Hour), rigid(3, 1, time.Minute), rigid(4, 2, time.Hour))
		w.settle()
		want := map[string]map[JobID]int{
			"slots":    {1: 5, 2: 0, 3: 1, 4: 2},
			"fifo":     {1: 5, 2: 0, 3: 0, 4: 0},
			"firstfit": {1: 5, 2: 0, 3: 1, 4: 2},
			"easy":     {1: 5, 2: 0, 3: 1, 4: 2}, // 4 takes the two that 2 leaves over
			"dmr":      {1: 5, 2: 0, 3: 1, 4: 2},
		}[p.Name()]
		w.want("8 slots", want)
		w.tell(Ended{1}, Ended{3})
		w.settle()
		if p.Name() == "fifo" || p.Name() == "easy" {
			w.want("after 1", map[JobID]int{2: 6})
		}
	}
	// What delays the first one is not backfilled: 4 of three slots runs too long.
	w := newWorld(t, Easy{}, 8)
	w.tell(rigid(1, 5, time.Minute))
	w.tell(rigid(2, 6, time.Hour), rigid(4, 3, time.Hour), rigid(5, 3, time.Minute))
	w.settle()
	w.want("easy", map[JobID]int{2: 0, 4: 0, 5: 3})
	// Whose end nobody knows lets nobody pass.
	w = newWorld(t, Easy{}, 8)
	w.tell(rigid(1, 5, 0))
	w.tell(rigid(2, 6, time.Hour), rigid(3, 1, time.Second))
	w.settle()
	w.want("easy", map[JobID]int{2: 0, 3: 0})
	// First fit starts with less, where that is allowed.
	w = newWorld(t, FirstFit{}, 8)
	w.tell(job(1, 0, COL{Min: 2, Pref: 6}), job(2, 0, COL{Min: 2, Pref: 4}), job(3, 0, COL{Min: 2, Pref: 4}))
	w.settle()
	w.want("firstfit", map[JobID]int{1: 6, 2: 2, 3: 0})
}

// Wishes are granted within their bounds, by each policy.
func TestWishes(t *testing.T) {
	for _, p := range Policies() {
		w := newWorld(t, p, 8)
		for id := JobID(1); id <= 2; id++ {
			w.tell(Arrived{Job{ID: id, Size: 3}})
		}
		w.tell(Wished{Job: 1, Size: 6})
		w.settle()
		w.want("too much", map[JobID]int{1: 3, 2: 3})
		w.tell(Wished{Job: 1, Size: 6, Min: 4})
		w.settle()
		w.want("with bounds", map[JobID]int{1: 5, 2: 3})
		w.tell(Wished{Job: 2, Size: 1})
		w.settle()
		w.want("less", map[JobID]int{1: 5, 2: 1})
		w.tell(Wished{Job: 1, Size: 7})
		w.end(0, false)
		if len(w.pending) > 0 || w.m.byID[1].Wish != 0 {
			t.Errorf("%s: what has failed is wished again: %v", p.Name(), w.pending)
		}
	}
}

// The published policy, step by step.
func TestDMR(t *testing.T) {
	w := newWorld(t, DMR{}, 16)
	w.tell(job(1, 2, COL{Min: 2, Pref: 4, Max: 12}))
	w.settle()
	w.want("toward max", map[JobID]int{1: 12})
	// It gives (12 - after) for 7 of which 4 are free, not after.
	w.tell(rigid(2, 7, 0))
	if len(w.pending) != 1 || w.pending[0] != (Decision{1, 9, 12}) {
		t.Errorf("decided %v before the slots are free", w.pending)
	}
	w.settle()
	w.want("shrunk by what is lacking", map[JobID]int{1: 9, 2: 7})
	w.tell(rigid(3, 8, 0)) // below min
	w.settle()
	w.want("not below min", map[JobID]int{1: 9, 3: 0})
	w.tell(rigid(4, 1, 0), Ended{3})
	w.settle()
	w.want("one more", map[JobID]int{1: 8, 4: 1})

	w = newWorld(t, DMR{}, 16)
	w.tell(job(1, 16, COL{Min: 2, Pref: 4, Max: 16, PowerOfTwo: true}))
	w.tell(rigid(2, 1, 0))
	w.settle()
	w.want("a power of two below", map[JobID]int{1: 8, 2: 1})

	// Below pref it grows, though somebody waits; at pref it does not shrink for who
	// would still not fit.
	w = newWorld(t, DMR{}, 8)
	w.tell(job(1, 2, COL{Min: 2, Pref: 6, Max: 6}), rigid(2, 7, 0))
	w.settle()
	w.want("pref first", map[JobID]int{1: 6, 2: 0})

	// A start whose room does not come is taken back.
	w = newWorld(t, DMR{}, 8)
	w.tell(job(1, 8, COL{Min: 2, Pref: 4}))
	w.tell(rigid(2, 4, 0))
	w.end(0, false)
	if len(w.pending) > 0 || w.m.byID[2].Target != 0 {
		t.Errorf("a start without slots: %v", w.pending)
	}
	at, ok := w.m.Next()
	if !ok || at != firstRest {
		t.Errorf("it looks again at %v, %v", at, ok)
	}
	w.now = at
	w.tell()
	w.settle()
	w.want("the second time", map[JobID]int{1: 4, 2: 4})
	// A change that costs more than it saves is not made.
	w = newWorld(t, DMR{}, 8)
	w.tell(job(1, 4, COL{Model: amdahl(1, 10), Cost: cost(t, "590")}))
	w.settle()
	w.want("what costs too much", map[JobID]int{1: 4})
}
