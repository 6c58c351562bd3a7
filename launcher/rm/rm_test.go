// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gompi/internal/resize/col"
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
