// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/spawn"
)

// world is a job without a line of its real parts: processes, sets and the words of
// pages as a few maps, and a book that is told what happens to them. It checks what
// the book asks for as it comes.
type world struct {
	t     *testing.T
	rng   *rand.Rand
	b     *Book
	now   time.Duration
	most  int
	slots int  // most newcomers at once
	full  bool // Reserve has said ErrBusy, by chance, since the last flush

	procs    map[wire.ProcID]*process
	last     uint32
	sets     map[uint32]*set
	nsets    uint32
	main     uint32
	replaced map[uint32]uint32
	stay     bool
	came     map[wire.ProcID]uint32 // by what set

	words   map[uint32]*word // of changes that members have seen
	asked   []Effect         // swaps that were not done yet
	news    []Effect         // words that were swapped by members, and not told yet
	launch  []Effect
	states  map[uint32]State // what was told
	reserve map[uint32]int   // newcomers of changes, until decided or discarded
	log     []string

	lessened int // grants of fewer than wished
}

type process struct {
	joined, over, gone bool
	leaving            bool
}

type set struct {
	members []wire.ProcID
	holds   int
}

type word struct {
	v      Decision // 0: open
	fixed  bool
	voters map[wire.ProcID]bool // true: has voted
}

func newWorld(t *testing.T, seed uint64, n, most int) *world {
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), most: most, slots: most,
		procs: map[wire.ProcID]*process{}, sets: map[uint32]*set{}, words: map[uint32]*word{},
		states: map[uint32]State{}, replaced: map[uint32]uint32{}, came: map[wire.ProcID]uint32{}, reserve: map[uint32]int{},
	}
	w.b = New(w, time.Minute)
	var world []wire.ProcID
	for range n {
		p := w.proc()
		w.procs[p].joined = true
		world = append(world, p)
	}
	w.main = w.Define(world)
	return w
}

func (w *world) proc() wire.ProcID {
	w.last++
	p := wire.ProcID{Job: 1, Serial: w.last}
	w.procs[p] = &process{}
	return p
}

func (w *world) fail(format string, a ...any) {
	w.t.Helper()
	for _, l := range w.log[max(0, len(w.log)-40):] {
		w.t.Log(l)
	}
	w.t.Fatalf(format, a...)
}

func (w *world) say(format string, a ...any) { w.log = append(w.log, fmt.Sprintf(format, a...)) }

func (w *world) Members(s uint32) ([]wire.ProcID, bool) {
	if t := w.sets[s]; t != nil {
		return t.members, true
	}
	return nil, false
}

func (w *world) Main() uint32 { return w.main }

func (w *world) Names(list []wire.ProcID) string { return fmt.Sprint(list) }
func (w *world) Ended(p wire.ProcID) string      { return fmt.Sprint(p, " was killed") }

func (w *world) Came(p wire.ProcID) uint32 { return w.came[p] }

func (w *world) Lives(p wire.ProcID) bool { q := w.procs[p]; return q != nil && !q.over }

func (w *world) taken() (n int) {
	for _, p := range w.procs {
		if !p.gone {
			n++
		}
	}
	return n
}

func (w *world) Most() int { return w.most }
func (w *world) Room() int { return w.most - w.taken() }

func (w *world) RoomOn([]uint32) (free, ever int) { return w.most, w.most }

func (w *world) Reserve(wants []Want) ([]wire.ProcID, error) {
	n := 0
	for _, x := range wants {
		n += x.N
	}
	switch w.rng.IntN(50) {
	case 0:
		return nil, errors.New("no memory")
	case 1:
		w.full = true
		return nil, ErrBusy
	}
	list := make([]wire.ProcID, n)
	for i := range list {
		list[i] = w.proc()
	}
	if w.taken() > w.most {
		w.fail("%d processes where there is room for %d", w.taken(), w.most)
	}
	return list, nil
}

// Host: two processes share one.
func (w *world) Host(p wire.ProcID) uint32 { return p.Serial / 2 }

func (w *world) Define(m []wire.ProcID) uint32 {
	w.nsets++
	w.sets[w.nsets] = &set{members: slices.Clone(m), holds: 1}
	return w.nsets
}

func (w *world) Hold(s uint32) {
	if w.sets[s] == nil {
		w.fail("hold of set %d, which is gone", s)
	}
	w.sets[s].holds++
}

func (w *world) Drop(s uint32) {
	t := w.sets[s]
	if t == nil {
		w.fail("drop of set %d, which is gone", s)
	}
	if t.holds--; t.holds == 0 {
		delete(w.sets, s)
		w.b.SetGone(s)
	}
}

func (w *world) Replace(s, result uint32) {
	w.say("set %d is %d now", s, result)
	if !w.stay {
		w.replaced[s] = result
	}
	if w.main == s {
		w.Hold(result)
		w.main = result
		w.Drop(s)
	}
}

// Stays: in some worlds members follow a set on when it has a Result.
func (w *world) Stays(uint32) bool { return w.stay }

func (w *world) Successor(s uint32) uint32 { return w.replaced[s] }

func (w *world) Fits(_ uint32, size int) error {
	if size == 13 {
		return errors.New("not a number of processes to have")
	}
	return nil
}

func (w *world) Starts(wants []Want) error {
	for _, x := range wants {
		if x.N > w.slots {
			return tooMany(x.N, w.slots)
		}
	}
	return nil
}

func (w *world) Tells([]uint32, []wire.ProcID, []wire.ProcID, int, bool) error { return nil }

func (w *world) Terms([]uint32) Terms { return Terms{} }

// flush does what the book asks for, or notes it for later.
func (w *world) flush() {
	w.b.Flush(func(e *Effect) {
		w.say("  effect %d of %d: %v %v %v", e.Do, e.Op, e.State, e.Why, e.Procs)
		switch e.Do {
		case StateChanged:
			w.told(e)
		case Launch:
			w.launch = append(w.launch, *e)
			w.reserve[e.Op] = len(e.Procs)
		case Discard:
			for _, p := range e.Procs {
				w.procs[p].over, w.procs[p].gone = true, true
				w.b.Gone(w.now, p)
			}
			delete(w.reserve, e.Op)
		case Announce:
			if w.words[e.Op] != nil {
				w.fail("change %d is shown twice", e.Op)
			}
			v := map[wire.ProcID]bool{}
			for _, p := range e.Procs {
				if !w.Lives(p) {
					w.fail("%v votes, which does not live", p)
				}
				v[p] = false
			}
			w.words[e.Op] = &word{voters: v}
		case Agree:
			if w.words[e.Op].fixed {
				w.fail("change %d is fixed twice", e.Op)
			}
			w.words[e.Op].fixed = true
		case Withdraw, Break:
			w.asked = append(w.asked, *e)
		case Vote:
			for _, p := range e.Procs {
				w.vote(e.Op, p)
			}
		case Drop:
			for _, s := range e.Sets {
				w.Drop(s)
			}
		case Leave:
			for _, p := range e.Procs {
				w.procs[p].leaving = true
			}
		case Terminate:
			for _, p := range e.Procs {
				if w.procs[p].gone {
					w.fail("%v is terminated, and is gone", p)
				}
				w.procs[p].over, w.procs[p].gone = true, true
				w.b.Died(w.now, p)
				w.b.Gone(w.now, p)
			}
		}
	})
	// Whoever can be granted has been. A set that is watched is held, so that no
	// operation waits for the news that it is gone.
	full := w.full
	w.full = false
	if w.b.advance(w.now); len(w.b.out) > 0 {
		if e := w.b.out[0]; !full && !errors.Is(e.Why, ErrSetGone) {
			w.fail("operation %d has waited to be %v for nothing: %v", e.Op, e.State, e.Why)
		}
		w.flush()
		return
	}
	w.check()
}

// told holds what is told of an operation to its states and to its word.
func (w *world) told(e *Effect) {
	from, ok := w.states[e.Op]
	if ok && from.Over() {
		w.fail("operation %d is %v, and was %v", e.Op, e.State, from)
	}
	if ok && e.State <= from && !(e.State == Queued) {
		w.fail("operation %d goes from %v to %v", e.Op, from, e.State)
	}
	w.states[e.Op] = e.State
	for _, out := range e.Outputs {
		for _, s := range out.Joining {
			for _, p := range w.sets[s].members {
				if w.came[p] = s; e.State > Done {
					delete(w.came, p)
				}
			}
		}
	}
	v := Decision(0)
	if t := w.words[e.Op]; t != nil {
		v = t.v
	}
	switch {
	case e.State == Committed && v != IsCommitted:
		w.fail("operation %d is committed, its word says %d", e.Op, v)
	case (e.State == RolledBack || e.State == Cancelled) && (v == IsAccepted || v == IsCommitted):
		w.fail("operation %d is %v, its word says %d", e.Op, e.State, v)
	case (e.State == RolledBack || e.State == Cancelled) && from >= Ready && v != IsRolledBack:
		w.fail("operation %d is %v, its word is open", e.Op, e.State)
	case errors.Is(e.Why, errUnasked):
		w.fail("operation %d: %v", e.Op, e.Why)
	case (e.State >= Refused) != (e.Why != nil):
		w.fail("operation %d is %v: %v", e.Op, e.State, e.Why)
	}
	if o := w.b.ops[e.Op]; e.State == Granted && o.req.bounded() && len(o.parts[0].join) > 0 {
		size, wish := 0, o.req.To
		for _, procs := range o.parts[0].join {
			size += len(procs)
		}
		if wish == 0 {
			wish = o.req.Join[0]
		}
		if o.req.Kind != Add {
			size += len(o.parts[0].rest)
		}
		if o.req.To == 0 && o.req.Kind != Add {
			wish += len(o.parts[0].rest)
		}
		if !o.req.allows(size) || size > wish || len(o.parts[0].join[0]) == 0 {
			w.fail("operation %d, which wishes for %d, comes to %d: %+v", e.Op, wish, size, o.req)
		} else if size < wish {
			w.lessened++
		}
	}
	if e.State.Over() || e.State == Committed {
		delete(w.reserve, e.Op)
	}
	if e.State.Over() {
		delete(w.words, e.Op)
		if e.State != Done {
			for _, o := range e.Outputs {
				for _, s := range append(slices.Clone(o.Joining), o.Leaving, o.Result) {
					if w.b.outputs[s] != nil {
						w.fail("set %d of operation %d, which is %v, is still awaited", s, e.Op, e.State)
					}
				}
			}
		}
	}
}

// check looks at what must hold at any time.
func (w *world) check() {
	inputs := map[uint32]uint32{}
	goes := map[wire.ProcID]uint32{}
	for _, o := range byNumber(w.b.ops) {
		if !o.state.undecided() {
			continue
		}
		for i := range o.parts {
			for _, s := range o.parts[i].in {
				if other, ok := inputs[s]; ok && other != o.number {
					w.fail("changes %d and %d of set %d at once", other, o.number, s)
				}
				inputs[s] = o.number
			}
			for _, p := range o.parts[i].leave {
				if goes[p] != 0 {
					w.fail("%v leaves twice", p)
				}
				goes[p] = o.number
			}
		}
	}
	for s, n := range inputs {
		m, ok := w.Members(s)
		if !ok {
			w.fail("set %d, an input of %d, is gone", s, n)
		}
		for _, p := range m {
			if other := goes[p]; other != 0 && other != n && w.Lives(p) { // who has ended is in no change that is granted after that
				w.fail("%v of set %d, which %d changes, is removed by %d", p, s, n, other)
			}
		}
	}
}

func (w *world) swap(n uint32, from, to Decision) {
	if t := w.words[n]; t != nil && t.v == from {
		w.say("  word of %d: %d to %d", n, from, to)
		t.v = to
	}
}

func (w *world) vote(n uint32, p wire.ProcID) {
	t := w.words[n]
	if t == nil {
		return
	}
	if voted, ok := t.voters[p]; !ok || voted {
		return
	}
	t.voters[p] = true
	for _, voted := range t.voters {
		if !voted {
			return
		}
	}
	w.swap(n, IsAccepted, IsCommitted)
}

func (w *world) report(n uint32) {
	if t := w.words[n]; t != nil && t.v != 0 {
		w.b.Decided(w.now, n, t.v)
		w.flush()
	}
}

// died ends a process; whoever hears of it looks at the words first.
func (w *world) died(p wire.ProcID) {
	for _, n := range slices.Sorted(maps.Keys(w.words)) {
		if t := w.words[n]; t != nil {
			if _, ok := t.voters[p]; ok {
				w.report(n)
			}
		}
	}
	w.procs[p].over = true
	w.b.Died(w.now, p)
	w.flush()
	w.procs[p].gone = true
	w.b.Gone(w.now, p)
	w.flush()
}

// left lets a process end in order.
func (w *world) left(p wire.ProcID) {
	w.say("%v leaves", p)
	w.procs[p].over = true
	w.b.Left(w.now, p)
	w.flush()
	w.procs[p].gone = true
	w.b.Gone(w.now, p)
}

func pick[T any](w *world, list []T) (x T, ok bool) {
	if len(list) == 0 {
		return x, false
	}
	return list[w.rng.IntN(len(list))], true
}

func (w *world) living(joined bool) []wire.ProcID {
	var list []wire.ProcID
	for s := range w.last {
		p := wire.ProcID{Job: 1, Serial: s + 1}
		if q := w.procs[p]; !q.over && q.joined == joined {
			list = append(list, p)
		}
	}
	return list
}

// request is one that may or may not make sense.
func (w *world) request(kinds int) Request {
	r := Request{
		Kind: Kind(1 + w.rng.IntN(kinds)), NoQueue: w.rng.IntN(8) == 0, Prepare: w.rng.IntN(4) == 0,
		ToReady: time.Duration(1+w.rng.IntN(100)) * time.Second, ToAccept: time.Duration(1+w.rng.IntN(100)) * time.Second,
	}
	if w.rng.IntN(8) == 0 {
		r.Whole = time.Duration(1+w.rng.IntN(100)) * time.Second
	}
	if w.rng.IntN(8) == 0 {
		r.By = wire.ProcID{Job: 1, Serial: 1 + w.rng.Uint32N(w.last)}
	}
	in := func() uint32 {
		if s, ok := pick(w, slices.Sorted(maps.Keys(w.sets))); ok && w.rng.IntN(2) == 0 {
			return s
		}
		if r.By.Job != 0 {
			return Latest
		}
		return 0
	}
	leave := func() {
		if m, ok := w.Members(w.b.resolve(&operation{req: r}, r.In[0])); ok && w.rng.IntN(2) == 0 {
			if p, ok := pick(w, m); ok {
				r.Out = []wire.ProcID{p}
				return
			}
		}
		r.Leave = 1 + w.rng.IntN(2)
	}
	switch r.Kind {
	case Multi:
		for range 1 + w.rng.IntN(3) {
			p := w.request(int(Replace))
			if w.rng.IntN(20) != 0 {
				p.Min, p.Max, p.Pref, p.Sizes = 0, 0, 0, nil
				p.Start = spawn.All
			}
			r.Parts = append(r.Parts, p)
		}
	case Add:
		for range w.rng.IntN(2) {
			r.In = append(r.In, in())
		}
		for range 1 + w.rng.IntN(2) {
			r.Join = append(r.Join, 1+w.rng.IntN(2))
		}
	case Sub, Shrink:
		r.In = []uint32{in()}
		leave()
	case Grow:
		r.In, r.Join = []uint32{in()}, []int{1 + w.rng.IntN(3)}
	case Replace:
		r.In = []uint32{in()}
		if w.rng.IntN(2) == 0 {
			r.To = 1 + w.rng.IntN(6)
		} else {
			r.Join = []int{1}
			leave()
		}
	}
	switch n := w.rng.IntN(24); {
	case n == 0: // bounds that seldom make sense
		r.Min, r.Max, r.Pref = w.rng.IntN(5), w.rng.IntN(9), w.rng.IntN(6)
	case n < 8 && (r.Kind == Grow || r.Kind == Replace || r.Kind == Add && len(r.Join) == 1):
		if r.Min = 1 + w.rng.IntN(4); r.To > 0 {
			r.To += r.Min
		} else if len(r.Join) > 0 {
			r.Join[0] += w.rng.IntN(5)
		}
		if size := r.Min + w.rng.IntN(6); r.To == 0 && n < 5 {
			r.Max = 12
			r.Pref, r.Sizes = size, []int{size, size + 1, size + 3}
		}
	}
	if w.rng.IntN(3) == 0 && r.Kind != Multi {
		r.Start, r.Place = spawn.Strategy(w.rng.IntN(4)), spawn.Placement(w.rng.IntN(2))
	}
	return r
}

// step lets something happen.
func (w *world) step(quiet bool) {
	kinds := 16
	if quiet {
		kinds = 9
	}
	switch w.rng.IntN(kinds) {
	case 0: // a launch
		if len(w.launch) > 0 {
			e := w.launch[0]
			w.launch = w.launch[1:]
			var err error
			if w.rng.IntN(10) == 0 {
				err = errors.New("no such program")
			}
			w.say("launched %d: %v", e.Op, err)
			w.b.Launched(w.now, e.Op, err)
		}
	case 1, 2: // a newcomer
		if p, ok := pick(w, w.living(false)); ok {
			w.say("%v joins", p)
			w.procs[p].joined = true
			w.b.Joined(w.now, p)
			w.b.NewcomerProgress(w.now, p)
			w.b.Prepared(w.now, p)
		}
	case 3: // somebody is handed a change
		if n, ok := pick(w, slices.Sorted(maps.Keys(w.words))); ok && w.words[n].fixed {
			for p, voted := range w.words[n].voters {
				if !voted && w.Lives(p) {
					w.swap(n, 0, IsAccepted)
					break
				}
			}
		} else if ok && len(w.words[n].voters) > 0 && w.onlyNew(n) {
			w.swap(n, 0, IsAccepted) // nobody follows it: newcomers alone
		}
	case 4, 5: // a vote
		if n, ok := pick(w, slices.Sorted(maps.Keys(w.words))); ok {
			if p, ok := pick(w, slices.SortedFunc(maps.Keys(w.words[n].voters), func(a, b wire.ProcID) int { return int(a.Serial) - int(b.Serial) })); ok && w.Lives(p) {
				if old := w.words[n].v; old == IsAccepted {
					w.vote(n, p)
				}
			}
		}
	case 6: // the head hears of a word
		if n, ok := pick(w, slices.Sorted(maps.Keys(w.words))); ok {
			w.report(n)
		}
	case 7: // a swap that was asked for
		if len(w.asked) > 0 {
			e := w.asked[0]
			w.asked = w.asked[1:]
			w.swap(e.Op, 0, IsRolledBack)
			if e.Do == Break {
				w.swap(e.Op, IsAccepted, IsRolledBack)
			}
			w.report(e.Op)
		}
	case 8: // a leaver goes, or seldom who is none
		for _, p := range w.living(true) {
			if w.procs[p].leaving || w.rng.IntN(50) == 0 {
				w.left(p)
				break
			}
		}
	case 9, 10:
		r := w.request(int(Multi))
		n, err := w.b.Submit(w.now, r)
		w.say("submit %v of %v: %d %v", r.Kind, r.In, n, err)
	case 11: // a watch
		if s, ok := pick(w, slices.Sorted(maps.Keys(w.sets))); ok {
			for _, p := range w.sets[s].members {
				if w.Lives(p) && w.procs[p].joined && w.rng.IntN(6) != 0 {
					w.b.Watch(s, p, w.rng.IntN(4) == 0)
				}
			}
		}
	case 12:
		if n, ok := pick(w, slices.Sorted(maps.Keys(w.b.ops))); ok && w.rng.IntN(6) == 0 {
			s, _ := w.b.State(n)
			w.say("decline of %d, which is %v", n, s)
			w.b.Decline(w.now, n, ErrDeclined)
			if now, _ := w.b.State(n); s >= Committed && now != s || s == Queued && now == Refused {
				w.fail("decline of %d: %v, and was %v", n, now, s)
			}
			w.flush()
			if x := w.words[n]; x == nil && w.states[n].undecided() {
				w.fail("%d, which was declined, is %v", n, w.states[n])
			}
			break
		}
		if n, ok := pick(w, slices.Sorted(maps.Keys(w.b.ops))); ok && w.rng.IntN(3) == 0 {
			s, _ := w.b.State(n)
			err := w.b.Cancel(w.now, n)
			if w.say("cancel %d: %v", n, err); (err == nil) != (s < Adopting) {
				w.fail("cancel of %d in %v: %v", n, s, err)
			}
		}
	case 13:
		w.now += time.Duration(w.rng.IntN(20)) * time.Second
		w.say("it is %v", w.now)
		w.b.Tick(w.now)
	case 14:
		if p, ok := pick(w, w.living(w.rng.IntN(3) != 0)); ok && w.rng.IntN(4) == 0 && len(w.living(true)) > 2 {
			if w.say("%v dies", p); w.rng.IntN(2) == 0 {
				w.died(p)
				break
			}
			// A member's report of its swap may be on the way.
			w.procs[p].over, w.procs[p].gone = true, true
			w.b.Died(w.now, p)
			w.flush()
			w.b.Gone(w.now, p)
		}
	case 15:
		if n, ok := pick(w, slices.Sorted(maps.Keys(w.b.ops))); ok {
			for _, p := range w.living(true) {
				w.b.Release(n, p)
			}
		}
		if s, ok := pick(w, slices.Sorted(maps.Keys(w.sets))); ok && w.rng.IntN(20) == 0 {
			if p, ok := pick(w, w.sets[s].members); ok {
				w.say("%v closes its watch of %d", p, s)
				w.b.Unwatch(w.now, s, p)
			}
		}
	}
	w.flush()
}

func (w *world) onlyNew(n uint32) bool {
	for i := range w.b.ops[n].parts {
		if len(w.b.ops[n].parts[i].in) > 0 {
			return false
		}
	}
	return true
}

// Random scripts: each operation has one outcome, its word's; nothing is left of
// what did not happen; every wait ends.
func TestScripts(t *testing.T) {
	scripts, steps := 300, 400
	ends, lessened := map[State]int{}, 0
	for seed := range scripts {
		w := newWorld(t, uint64(seed), 4, 12)
		w.stay = seed%3 == 2
		for _, p := range w.sets[w.main].members {
			w.b.Watch(w.main, p, false)
		}
		for range steps {
			w.step(false)
		}
		// What is under way ends by itself or by its deadlines.
		for i := 0; len(w.b.ops) > 0; i++ {
			if i > 20000 {
				for _, o := range byNumber(w.b.ops) {
					for _, l := range w.log {
						if strings.Contains(l, fmt.Sprintf(" of %d:", o.number)) || strings.Contains(l, fmt.Sprintf(" %d:", o.number)) {
							w.t.Log("about it:", l)
						}
					}
					w.say("%d is %v, asked %d, waits for %v, word %+v", o.number, o.state, o.swap, o.waits, w.words[o.number])
				}
				w.fail("seed %d: %v", seed, w.b.Sizes())
			}
			w.step(true)
			if i%100 == 99 {
				if len(w.b.queue) == len(w.b.ops) {
					w.most += 100 // they wait for places
				}
				w.now += 200 * time.Second
				w.b.Tick(w.now)
				w.flush()
			}
		}
		for name, n := range w.b.Sizes() {
			if n != 0 && name != "watches" {
				w.fail("seed %d: %d %s are left", seed, n, name)
			}
		}
		for s, x := range w.sets {
			if s != w.main || x.holds != 1 {
				w.fail("seed %d: set %d has %d holds in the end; the main set is %d", seed, s, x.holds, w.main)
			}
		}
		for _, s := range w.states {
			ends[s]++
		}
		lessened += w.lessened
	}
	t.Log(ends, lessened)
	if lessened < 20 {
		t.Errorf("%d operations were granted with fewer than they wished for", lessened)
	}
	for _, s := range []State{Done, Refused, Cancelled, RolledBack} {
		if ends[s] < 20 {
			t.Errorf("%d of all operations ended %v", ends[s], s)
		}
	}
}
