// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gompi/internal/col"
)

func amdahl(serial, parallel float64) *col.Model {
	return &col.Model{Kind: col.Amdahl, Serial: serial, Parallel: parallel}
}

func cost(t testing.TB, text string) *col.Expr {
	t.Helper()
	e, err := col.ParseExpr(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// world carries decisions out, at once or when the test says so, and holds what it is
// told against what must always hold.
type world struct {
	t       *testing.T
	m       *Shared
	now     time.Duration
	slots   int
	has     map[JobID]int // processes
	cols    map[JobID]*COL
	pending []Decision
}

func newWorld(t *testing.T, p Policy, slots int) *world {
	w := &world{t: t, m: NewShared(Config{Policy: p}), has: map[JobID]int{}, cols: map[JobID]*COL{}}
	w.tell(Slots{Total: slots})
	return w
}

// tell steps the manager.
func (w *world) tell(events ...Event) {
	w.t.Helper()
	for _, ev := range events {
		switch ev := ev.(type) {
		case Slots:
			w.slots = ev.Total
		case Arrived:
			w.has[ev.Job.ID], w.cols[ev.Job.ID] = ev.Job.Size, ev.Job.COL
		case Ended:
			delete(w.has, ev.Job)
			w.pending = slices.DeleteFunc(w.pending, func(d Decision) bool { return d.Job == ev.Job })
		case Sized:
			w.has[ev.Job] = ev.Size
		}
	}
	for _, d := range w.m.Step(w.now, events...) {
		if size, ok := w.has[d.Job]; !ok || d.From != size || d.Size < 1 || d.Size == size {
			w.t.Errorf("decided %+v of a job of %d processes, %v", d, size, ok)
		}
		if slices.ContainsFunc(w.pending, func(e Decision) bool { return e.Job == d.Job }) {
			w.t.Errorf("decided %+v, and a change is under way: %v", d, w.pending)
		}
		before := w.used()
		if w.pending = append(w.pending, d); d.Size > d.From && w.used() > max(before, w.slots) {
			w.t.Errorf("decided %+v: %d of %d slots are used", d, w.used(), w.slots)
		}
	}
}

// used is how many slots are, while changes are under way.
func (w *world) used() int {
	sum := 0
	for id, n := range w.has {
		for _, d := range w.pending {
			if d.Job == id {
				n = max(n, d.Size)
			}
		}
		sum += n
	}
	return sum
}

// end carries the k-th pending decision out, or not.
func (w *world) end(k int, happens bool) {
	w.t.Helper()
	d := w.pending[k]
	w.pending = slices.Delete(w.pending, k, k+1)
	size := d.From
	if happens {
		size = d.Size
	}
	w.tell(Sized{d.Job, size})
}

// settle carries all out.
func (w *world) settle() {
	w.t.Helper()
	for n := 0; len(w.pending) > 0; n++ {
		if w.end(0, true); n > 1000 {
			w.t.Fatalf("it does not come to rest: %v", w.pending)
		}
	}
}

func (w *world) want(what string, sizes map[JobID]int) {
	w.t.Helper()
	for id, n := range sizes {
		if w.has[id] != n {
			w.t.Errorf("%s: %s gives %v, want %v", what, w.m.cfg.Policy.Name(), w.has, sizes)
			return
		}
	}
}

// job makes one that follows changes.
func job(id JobID, size int, c COL) Arrived {
	c.Version = col.Version
	return Arrived{Job{ID: id, COL: &c, Size: size, Follows: true}}
}

func rigid(id JobID, n int, limit time.Duration) Arrived {
	return Arrived{Job{ID: id, Start: n, Limit: limit}}
}

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

// What was wrong in the published steepest ascent.
func TestAscentDefects(t *testing.T) {
	// The winner's priority counts, not that of who is looked at last.
	for _, first := range []int{1, 5} {
		w := newWorld(t, Ascent{}, 3)
		w.tell(job(1, 1, COL{Model: amdahl(1, 9), Priority: first}), job(2, 1, COL{Model: amdahl(1, 9), Priority: 6 - first}))
		w.settle()
		want := map[JobID]int{1: 2, 2: 1}
		if first == 1 {
			want = map[JobID]int{1: 1, 2: 2}
		}
		w.want("priority", want)
	}
	// A gain is for each slot that is moved, not for the step: 2 and 1 for 7 and 3 are
	// better than 3 for 9.
	table := func(points ...col.Point) *col.Model { return &col.Model{Kind: col.Table, Points: points} }
	w := newWorld(t, Ascent{}, 6)
	w.tell(
		job(1, 1, COL{Model: table(col.Point{P: 1, Seconds: 1}, col.Point{P: 4, Seconds: 1.0 / 10}), Sizes: []int{1, 4}}),
		job(2, 1, COL{Model: table(col.Point{P: 1, Seconds: 1}, col.Point{P: 3, Seconds: 1.0 / 8}), Sizes: []int{1, 3}}),
		job(3, 1, COL{Model: table(col.Point{P: 1, Seconds: 1}, col.Point{P: 2, Seconds: 1.0 / 4}), Sizes: []int{1, 2}}))
	w.settle()
	w.want("for each slot", map[JobID]int{1: 1, 2: 3, 3: 2})
	// Who has nothing to give does not hide those who have: 2 gives all but one.
	w = newWorld(t, Ascent{}, 8)
	flat := COL{Model: &col.Model{Kind: col.Constant, Offset: 1}}
	w.tell(job(1, 1, flat), job(2, 4, flat), job(3, 3, COL{Model: &col.Model{Kind: col.Linear, Slope: 1}}))
	w.settle()
	w.want("who can give", map[JobID]int{1: 1, 2: 1, 3: 6})
	// One who loses nothing by it gives its processes up though nobody wants them, and
	// so does one who loses by them.
	w = newWorld(t, Ascent{}, 8)
	w.tell(job(1, 4, flat))
	w.settle()
	w.want("gains nothing by its processes", map[JobID]int{1: 1})
	w = newWorld(t, Ascent{}, 8)
	w.tell(job(1, 8, COL{Model: &col.Model{Kind: col.Inverse, Serial: 1, Parallel: 9}, Min: 2}))
	w.settle()
	w.want("loses by its processes", map[JobID]int{1: 2})
}

func TestAscent(t *testing.T) {
	// Two of the same share, and a third one that comes takes its part.
	w := newWorld(t, Ascent{}, 12)
	same := COL{Model: amdahl(1, 99)}
	w.tell(job(1, 12, same))
	w.tell(job(2, 0, same))
	w.settle()
	w.want("two", map[JobID]int{1: 6, 2: 6})
	w.tell(job(3, 0, same))
	w.settle()
	w.want("three", map[JobID]int{1: 4, 2: 4, 3: 4})
	w.tell(Ended{2})
	w.settle()
	w.want("two again", map[JobID]int{1: 6, 3: 6})
	// Slots are lost, and come back.
	w.tell(Slots{Total: 7})
	w.settle()
	if w.used() > 7 {
		t.Errorf("%d of 7 slots are used: %v", w.used(), w.has)
	}
	// A cost that is paid once: small steps are worth nothing, a large one is.
	w = newWorld(t, Ascent{}, 8)
	w.tell(job(1, 2, COL{Model: &col.Model{Kind: col.Linear, Slope: 1}, Cost: cost(t, "250")}))
	w.settle()
	w.want("one large step", map[JobID]int{1: 8})
	// And back and forth between equals is worth nothing.
	w = newWorld(t, Ascent{}, 4)
	flat := COL{Model: amdahl(1, 9), Cost: cost(t, "1"), Hysteresis: 0.05} // 2 S(2) = 3.64 < 1.05 (S(3) + S(1)) = 3.68
	w.tell(job(1, 3, flat), job(2, 1, flat))
	w.settle()
	w.want("hysteresis", map[JobID]int{1: 3, 2: 1})
	w = newWorld(t, Ascent{}, 4)
	flat.Hysteresis = 0.03
	w.tell(job(1, 3, flat), job(2, 1, flat))
	w.settle()
	w.want("less of it", map[JobID]int{1: 2, 2: 2})
	for range 10 {
		w.now += time.Minute
		if w.tell(); len(w.pending) > 0 {
			t.Fatalf("it does not come to rest: %v", w.pending)
		}
	}
	// Settle keeps a job where it is for a while.
	w = newWorld(t, Ascent{}, 4)
	w.tell(job(1, 2, COL{Model: amdahl(1, 99), Settle: 60}))
	w.settle()
	w.tell(Slots{Total: 8})
	w.settle()
	w.want("not yet", map[JobID]int{1: 4})
	at, ok := w.m.Next()
	if w.now = at; !ok || at != time.Minute {
		t.Errorf("next at %v, %v", at, ok)
	}
	w.tell()
	w.settle()
	w.want("a minute later", map[JobID]int{1: 8})
	// Hosts that are taken whole.
	w = newWorld(t, Ascent{}, 8)
	w.tell(Slots{Total: 8, Host: 4})
	w.tell(job(1, 1, COL{Model: amdahl(0, 9), Mapping: "2:node"}))
	w.settle()
	w.want("two on each of two hosts", map[JobID]int{1: 4})
}

// random makes a small table.
func random(r *rand.Rand, t testing.TB, hard bool) *Shared {
	s := NewShared(Config{Policy: SlotsPolicy{}, Horizon: time.Duration(60+r.IntN(600)) * time.Second})
	slots, used := 2+r.IntN(MostSlots-1), 0
	s.table.Slots = slots
	for id := range 1 + r.IntN(MostJobs) {
		c := COL{Version: col.Version, Model: amdahl(float64(r.IntN(20))/10, 1+float64(r.IntN(100)))}
		if hard {
			c.Priority = 1 + r.IntN(4)
			c.Min, c.PowerOfTwo = r.IntN(3), r.IntN(3) == 0
			c.Cost = cost(t, fmt.Sprint(r.IntN(60)))
			c.Hysteresis = float64(r.IntN(3)) / 20
			if r.IntN(3) == 0 {
				c.Invalid = []int{1 + r.IntN(8)}
			}
			if r.IntN(4) == 0 {
				c.Delta = 2
			}
		}
		e := &Entry{Job: Job{ID: JobID(id), COL: &c, Follows: true}}
		if r.IntN(2) == 0 && used < slots {
			e.Size = c.Largest(0, 1+r.IntN(slots-used))
			used += e.Size
		} else {
			e.Start = c.Largest(0, 1+r.IntN(slots))
		}
		s.table.Jobs, s.byID[e.ID] = append(s.table.Jobs, e), e
	}
	return s
}

// Each policy against the brute force: it keeps to the rules, is no better, and ascent
// is as good where that can be proved: without costs, sizes and priorities.
func TestOptimum(t *testing.T) {
	got, best := map[string]float64{}, 0.0
	for seed := range uint64(600) {
		hard := seed%3 != 0
		s := random(rand.New(rand.NewPCG(seed, 1)), t, hard)
		tab := &s.table
		_, most, err := Optimum(tab)
		if err != nil {
			t.Fatal(err)
		}
		idle := tab.Value(nil)
		if best += most - idle; most < idle {
			t.Fatalf("seed %d: the optimum is %v, to do nothing %v", seed, most, idle)
		}
		for _, p := range Policies() {
			list := p.Decide(tab)
			used := 0
			for _, e := range tab.Jobs {
				size := e.Size
				for _, d := range list {
					if d.Job == e.ID {
						if size = d.Size; !tab.may(e, size) || d.From != e.Size {
							t.Errorf("seed %d: %s decides %+v, which may not be", seed, p.Name(), d)
						}
					}
				}
				used += size
			}
			v := tab.Value(list)
			got[p.Name()] += v - idle
			switch eps := 1e-9 * math.Abs(most); {
			case used > tab.Slots:
				t.Errorf("seed %d: %s gives out %d of %d slots: %v", seed, p.Name(), used, tab.Slots, list)
			case v > most+eps:
				t.Errorf("seed %d: %s comes to %v by %v, the optimum is %v", seed, p.Name(), v, list, most)
			case v < idle-eps:
				t.Errorf("seed %d: %s comes to %v by %v, less than the %v of doing nothing", seed, p.Name(), v, list, idle)
			case p.Name() == "ascent" && !hard && v < most-eps:
				t.Errorf("seed %d: ascent comes to %v by %v, the optimum is %v", seed, v, list, most)
			}
		}
	}
	for _, p := range Policies() {
		t.Logf("%-8s %5.1f %% of what can be gained", p.Name(), 100*got[p.Name()]/best)
	}
	if got["ascent"] < 0.97*best {
		t.Errorf("ascent gains %.1f %% of what can be gained", 100*got["ascent"]/best)
	}
	if _, _, err := Optimum(&Table{Slots: MostSlots + 1}); err == nil {
		t.Error("17 slots are taken")
	}
}

// Random jobs come, wish, change, fail to, and go, in any order: slots are conserved,
// and it comes to rest.
func TestRandom(t *testing.T) {
	for _, p := range Policies() {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 2))
			w := newWorld(t, p, 24)
			last := JobID(0)
			for range 400 {
				w.now += time.Duration(r.IntN(20)) * time.Second
				ids := []JobID{}
				for id := JobID(1); id <= last; id++ {
					if _, ok := w.has[id]; ok {
						ids = append(ids, id)
					}
				}
				switch k := r.IntN(10); {
				case k < 3 && len(ids) < 12:
					last++
					c := COL{Model: amdahl(r.Float64(), 100), Min: r.IntN(3), Cost: cost(t, fmt.Sprint(r.IntN(40))), Settle: float64(r.IntN(60))}
					a := job(last, 0, c)
					a.Job.Limit, a.Job.Follows = time.Duration(r.IntN(3))*time.Minute, r.IntN(3) > 0
					if r.IntN(4) == 0 {
						a = rigid(last, 1+r.IntN(8), time.Minute)
					}
					w.tell(a)
				case k < 4 && len(ids) > 0:
					w.tell(Ended{ids[r.IntN(len(ids))]})
				case k < 5 && len(ids) > 0:
					w.tell(Wished{Job: ids[r.IntN(len(ids))], Size: r.IntN(12), Min: r.IntN(8)})
				case k < 6:
					w.tell(Slots{Total: 16 + r.IntN(16)})
				case k < 7:
					w.tell()
				default:
					if len(w.pending) > 0 {
						w.end(r.IntN(len(w.pending)), r.IntN(4) > 0)
					}
				}
				if t.Failed() {
					t.Fatalf("%s, seed %d", p.Name(), seed)
				}
			}
			w.settle()
			for id := range w.has {
				w.tell(Ended{id})
			}
			if len(w.m.byID)+len(w.m.table.Jobs)+len(w.m.held) > 0 || w.m.table.Free() != w.slots {
				t.Fatalf("%s, seed %d: something is left: %+v", p.Name(), seed, w.m.table)
			}
		}
	}
}

// What a job claims is bounded, and what is told of unknown jobs is nothing.
func TestBounds(t *testing.T) {
	s := NewShared(Config{Policy: Ascent{}, MaxPriority: 2})
	c := COL{Version: 1, Priority: 900}
	s.Step(0, Slots{Total: 4}, Arrived{Job{ID: 1, COL: &c, Start: 1}}, Arrived{Job{ID: 1, COL: &c, Start: 3}},
		Ended{7}, Sized{7, 3}, Wished{Job: 7, Size: 3}, Told{7, &c})
	if e := s.byID[1]; e.COL.Priority != 2 || c.Priority != 900 || e.Start != 1 || len(s.byID) != 1 {
		t.Errorf("%+v", e)
	}
	s.Step(0, Told{1, nil})
	if s.byID[1].COL != nil {
		t.Error("a COL is not withdrawn")
	}
}
