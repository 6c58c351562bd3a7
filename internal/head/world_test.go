// SPDX-License-Identifier: Apache-2.0

package head

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gompi/internal/change"
	"gompi/internal/control"
	"gompi/internal/testlab"
	"gompi/internal/wire"
)

// world is a head with agents, a launcher and processes that are a few maps, and do
// whatever occurs to them. Everything is said over the wire.
type world struct {
	t   *testing.T
	rng *rand.Rand
	h   *Head
	now time.Duration

	options  control.Options
	lost     map[uint32]bool // hosts
	procs    map[uint32]*member
	pages    map[pageOn]*sheet
	launches []*Launch
	reports  []report // that are on their way to the head
	frees    []uint32 // processes of which an agent has nothing more
	todo     []func() // what follows from what the head has said
	lastID   uint32
	ops      map[uint32]change.State // as they were told last
	ends     map[change.State]int
	log      []string
}

type report struct {
	host uint32
	r    control.Report
}

// member is a process.
type member struct {
	id      wire.ProcID
	host    uint32
	forked  bool
	joined  bool
	over    bool // dead, or has left
	exited  bool
	fate    Fate // of a newcomer
	coming  bool
	change  *control.ChangeBody // with which it came, and has not voted on
	sets    []uint32            // that it follows
	asks    []uint32            // pages by which it asks for others
	asked   map[uint32]control.Message
	handed  map[pageChange]bool
	ops     []uint32
	refused int
}

// sheet is one host's page of a set.
type sheet struct {
	change uint32
	word   change.Verdict // 0: open
	votes  uint32
	fixed  bool
	calls  uint64              // of Query
	shown  uint64              // from that call on members see the change, and it is not said until when
	queue  []control.PageOrder // meanwhile
}

func newWorld(t *testing.T, seed uint64, hosts, n int) *world {
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 2)), lost: map[uint32]bool{}, procs: map[uint32]*member{}, pages: map[pageOn]*sheet{},
		ops: map[uint32]change.State{}, ends: map[change.State]int{},
	}
	w.options = control.Options{Step: 1, Lookahead: 1, Hold: seed%4 == 1, Prepare: seed%5 == 1}
	slots := make([]int, hosts)
	for i := range slots {
		slots[i] = 4
	}
	cfg := Config{Job: 7, Launches: true, FaultTolerant: true, Slots: 12, Now: func() time.Duration { return w.now }, HostSlots: slots}
	w.h = New(cfg, hosts)
	places, err := w.h.Place(n)
	if err != nil {
		t.Fatal(err)
	}
	set, err := w.h.Join(make([][]string, n), nil, places)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range set.Members.All() {
		w.add(id, set.Hosts.At(i)).forked = true
	}
	w.flush()
	return w
}

func (w *world) add(id wire.ProcID, host uint32) *member {
	m := &member{id: id, host: host, asked: map[uint32]control.Message{}, handed: map[pageChange]bool{}}
	w.procs[id.Serial] = m
	return m
}

func (w *world) say(format string, a ...any) { w.log = append(w.log, fmt.Sprintf(format, a...)) }

func (w *world) fail(format string, a ...any) {
	w.t.Helper()
	for _, l := range w.log[max(0, len(w.log)-40):] {
		w.t.Log(l)
	}
	w.t.Fatalf(format, a...)
}

// flush carries out what the head asks for.
func (w *world) flush() {
	for w.h.Flush(w.effect) || len(w.todo) > 0 {
		if len(w.todo) > 0 {
			f := w.todo[0]
			w.todo = w.todo[1:]
			f()
		}
	}
}

func (w *world) effect(e *Effect) {
	switch {
	case e.Call != nil:
		e.Call()
	case e.Launch != nil:
		w.launches = append(w.launches, e.Launch)
	case e.Fate != 0:
		w.say("  fate %d of %v", e.Fate, e.Procs)
		w.fates(e)
	case !w.lost[e.Host]:
		w.order(e.Host, &e.Order)
	}
}

// fates checks that each newcomer that was launched meets one.
func (w *world) fates(e *Effect) {
	for _, id := range e.Procs {
		m := w.procs[id.Serial]
		switch {
		case e.Fate == MainIs:
		case e.Fate == Kept || e.Fate == Discarded:
			if m == nil || !m.coming || m.fate != 0 {
				w.fail("fate %d of %v, which is %+v", e.Fate, id, m)
			}
			m.fate = e.Fate
		case m == nil:
			w.fail("fate %d of %v, which nobody knows", e.Fate, id)
		case e.Fate == IsLate:
			w.end(m)
		}
	}
}

func (w *world) order(host uint32, o *control.Order) {
	m := w.procs[o.Serial]
	switch o.Kind {
	case control.OrderWelcome:
		var b control.Welcome
		if err := control.Decode(&b, o.Frame); err != nil {
			w.fail("a welcome is %v", err)
		}
		m.change = b.Change
		if (b.Change != nil) != m.coming {
			w.fail("process %v is welcomed with the change %+v", m.id, b.Change)
		}
	case control.OrderSend:
		f, n, err := control.ParseHead(o.Frame)
		if err != nil {
			w.fail("%v", err)
		}
		if f.Kind == control.KindReply && m != nil {
			w.answered(m, f.ID, o.Frame[control.FrameHead:][:n])
		}
	case control.OrderFollow:
		at := pageOn{o.Page.Set, host}
		if w.pages[at] == nil {
			w.pages[at] = &sheet{}
		}
		if m != nil {
			w.reply(m, o.ID, &control.FollowBody{Rest: o.Frame})
		}
	case control.OrderPage:
		w.page(host, &o.Page)
	case control.OrderAbandon:
		w.frees = append(w.frees, o.Serial)
	}
}

func (w *world) answered(m *member, id uint32, body []byte) {
	var r control.Reply
	if err := control.Decode(&r, body); err != nil {
		w.fail("%v", err)
	}
	if r.Status != control.StatusOK {
		w.say("  process %d: request %d fails: %v", m.id.Serial, id, r.Err())
		if m.refused++; m.asked[id] == nil {
			w.fail("process %v is refused %d, which it has not asked", m.id, id)
		}
		delete(m.asked, id)
		return
	}
	switch q := m.asked[id].(type) {
	case nil:
		w.fail("process %v is answered %d, which it has not asked", m.id, id)
	case *control.Submit, *control.Await, *control.Op:
		var b control.OpBody
		if err := control.Decode(&b, r.Body); err != nil {
			w.fail("%v", err)
		}
		w.say("  process %d: request %d (%T): %+v", m.id.Serial, id, q, b)
		w.told(m, q, &b)
	case *control.Handed:
		var b control.FollowBody
		if err := control.Decode(&b, r.Body); err != nil {
			w.fail("%v", err)
		}
		w.reply(m, id, &b)
	}
	delete(m.asked, id)
}

// told holds what is said of an operation to what was said before.
func (w *world) told(m *member, q control.Message, b *control.OpBody) {
	if _, ok := q.(*control.Submit); ok && b.Op != 0 {
		m.ops = append(m.ops, b.Op)
	}
	if a, ok := q.(*control.Await); ok && b.State < a.Until {
		w.fail("operation %d is %v, and %v was awaited", b.Op, b.State, a.Until)
	}
	if b.Op == 0 {
		return
	}
	if was := w.ops[b.Op]; was.Over() && was != b.State || b.State < was {
		w.fail("operation %d was %v, and is %v", b.Op, was, b.State)
	}
	if b.State.Over() && !w.ops[b.Op].Over() {
		w.ends[b.State]++
	}
	w.ops[b.Op] = b.State
	if (b.State > change.Done) != (b.Why != control.WhyNot) {
		w.fail("operation %d is %v because of %d", b.Op, b.State, b.Why)
	}
}

// reply is the answer of an agent, or of the head in place of it.
func (w *world) reply(m *member, id uint32, b *control.FollowBody) {
	switch q := m.asked[id].(type) {
	case *control.Follow:
		var ask control.AskBody
		if q.In == 0 {
			m.sets = append(m.sets, q.Set)
		} else if err := control.Decode(&ask, b.Rest); err != nil || ask.Page&control.AskPage == 0 {
			w.fail("process %v gets the page %+v: %v", m.id, ask, err)
		} else {
			m.asks = append(m.asks, ask.Page)
		}
	case *control.Handed:
		if q.Op != 0 {
			break
		}
		var c control.ChangeBody
		if err := control.Decode(&c, b.Rest); err != nil {
			w.fail("process %v is handed %v", m.id, err)
		}
		m.sets = slices.DeleteFunc(m.sets, func(s uint32) bool { return s == q.Set && c.Result.Number != 0 })
		if c.Result.Number != 0 && c.Role == control.RoleStaying {
			m.sets = append(m.sets, c.Result.Number)
		}
		if c.Votes {
			w.vote(m.host, q.Set, q.Change)
		} else {
			w.todo = append(w.todo, func() { w.tell(m, &control.Op{Kind: control.KindVoted, Op: c.Op}) })
		}
	case nil:
		w.fail("process %v gets a page, which it has not asked for", m.id)
	}
	delete(m.asked, id)
}

func (w *world) word(host, set uint32, g *sheet) {
	w.reports = append(w.reports, report{host, control.Report{Kind: control.ReportWord, Set: set, Change: g.change, Word: g.word, Iteration: 4}})
}

func (w *world) vote(host, set, c uint32) {
	g := w.pages[pageOn{set, host}]
	if g == nil || g.change != c || g.votes == 0 {
		return
	}
	if g.votes--; g.votes == 0 && g.word == change.IsAccepted {
		g.word = change.IsCommitted
		w.word(host, set, g)
	}
}

// page is what an agent does on a page.
func (w *world) page(host uint32, o *control.PageOrder) {
	g := w.pages[pageOn{o.Set, host}]
	w.say("  page %d of host %d: %+v, is %+v", o.Set, host, o, g)
	if g == nil {
		switch o.Do {
		case control.PageWithdraw, control.PageBreak:
			w.word(host, o.Set, &sheet{change: o.Change, word: change.IsRolledBack})
		case control.PageAsk, control.PageOver, control.PageBegun:
			w.look(host, o, control.Look{})
		}
		return
	}
	if o.Do == control.PageDrop {
		delete(w.pages, pageOn{o.Set, host})
		return
	}
	switch late := len(g.queue) > 0 || o.Do == control.PageBegin && g.shown > 0; {
	case o.Do == control.PageHide:
		if o.Change != g.change || o.Call <= g.calls || o.Call < g.shown || g.shown == 0 || g.fixed {
			w.fail("%+v on %+v", o, g)
		}
		queue := g.queue
		g.shown, g.queue = 0, nil
		for i := range queue {
			w.page(host, &queue[i])
		}
		return
	case late && (o.Do == control.PageWithdraw || o.Do == control.PageBreak):
		g.queue = slices.DeleteFunc(g.queue, func(q control.PageOrder) bool { return q.Change == o.Change })
		w.word(host, o.Set, &sheet{change: o.Change, word: change.IsRolledBack})
		return
	case late:
		g.queue = append(g.queue, *o)
		return
	case o.Do == control.PageOver && o.Change > g.change: // it was withdrawn before it began
		return
	}
	if o.Do == control.PageBegin {
		if o.Change <= g.change {
			w.fail("change %d after %d on the page of set %d", o.Change, g.change, o.Set)
		}
		*g = sheet{change: o.Change, votes: o.Votes, calls: g.calls}
		return
	}
	if o.Change != g.change {
		w.fail("%+v where change %d is", o, g.change)
	}
	switch o.Do {
	case control.PageFix:
		g.fixed = true
	case control.PageLook:
		w.reports = append(w.reports, report{host, control.Report{Kind: control.ReportLook, Set: o.Set, Look: control.Look{Bytes: uint64(w.rng.IntN(9))}}})
	case control.PageBegun:
		w.look(host, o, control.Look{})
	case control.PageAsk:
		g.calls += uint64(w.rng.IntN(3))
		w.look(host, o, control.Look{Begun: 1, Most: uint64(w.rng.IntN(9)), Calls: g.calls})
	case control.PagePublish:
		if o.Agreed == 0 || g.word != 0 || o.Call <= g.calls {
			w.fail("%+v on %+v", o, g)
		}
		g.fixed, g.word, g.shown = true, change.IsAccepted, o.Call
	case control.PageWithdraw, control.PageBreak:
		if g.word == 0 || o.Do == control.PageBreak && g.word == change.IsAccepted {
			g.word = change.IsRolledBack
		}
		w.word(host, o.Set, g)
	case control.PageVote:
		w.vote(host, o.Set, o.Change)
	case control.PageCommit:
		if g.word == change.IsAccepted {
			g.word = change.IsCommitted
			w.word(host, o.Set, g)
		}
	case control.PageOver:
		if g.fixed = false; g.shown > 0 {
			g.calls = max(g.calls, g.shown-1+uint64(w.rng.IntN(2)))
			w.look(host, o, control.Look{Calls: g.calls})
		}
	}
}

func (w *world) look(host uint32, o *control.PageOrder, l control.Look) {
	w.reports = append(w.reports, report{host, control.Report{Kind: control.ReportLook, Set: o.Set, Change: o.Change, Look: l}})
}

// tell lets a process say something, one way.
func (w *world) tell(m *member, x control.Message) {
	if !m.joined || m.over {
		return
	}
	w.frame(m, 0, x)
}

func (w *world) frame(m *member, id uint32, x control.Message) {
	w.say("process %d, request %d: %T %+v", m.id.Serial, id, x, x)
	w.h.Take(m.host, &control.Report{Kind: control.ReportFrame, Serial: m.id.Serial, Frame: control.Frame{Kind: control.KindOf(x), ID: id, Body: control.Encode(x)}})
	w.flush()
}

func (w *world) ask(m *member, x control.Message) {
	if !m.joined || m.over {
		return
	}
	w.lastID++
	m.asked[w.lastID] = x
	w.frame(m, w.lastID, x)
}

func (w *world) take(host uint32, r control.Report) {
	w.h.Take(host, &r)
	w.flush()
}

// end kills a process, as its launcher sees it.
func (w *world) end(m *member) {
	if m.exited {
		return
	}
	m.over, m.exited = true, true
	w.say("process %d is killed", m.id.Serial)
	w.reports = append(w.reports,
		report{m.host, control.Report{Kind: control.ReportHungUp, Serial: m.id.Serial}},
		report{m.host, control.Report{Kind: control.ReportExited, Serial: m.id.Serial, Text: "killed"}},
		report{m.host, control.Report{Kind: control.ReportFreed, Serial: m.id.Serial}})
}

// leave finalizes a process, which then ends.
func (w *world) leave(m *member) {
	if !m.joined || m.over {
		w.end(m)
		return
	}
	w.ask(m, &control.Empty{Kind: control.KindFinalize})
	m.over, m.exited = true, true
	w.reports = append(w.reports,
		report{m.host, control.Report{Kind: control.ReportHungUp, Serial: m.id.Serial}},
		report{m.host, control.Report{Kind: control.ReportExited, Serial: m.id.Serial, Text: "exited with status 0", Clean: true}},
		report{m.host, control.Report{Kind: control.ReportFreed, Serial: m.id.Serial}})
}

// deliver lets the head hear the oldest report.
func (w *world) deliver() {
	r := w.reports[0]
	w.reports = w.reports[1:]
	w.say("report %+v", r)
	w.take(r.host, r.r)
}

// start carries out a Launch.
func (w *world) start() {
	l := w.launches[0]
	w.launches = w.launches[1:]
	if w.rng.IntN(8) == 0 || slices.ContainsFunc(l.Places, func(at Place) bool { return w.lost[at.Host] }) {
		w.say("no places for operation %d", l.Op)
		w.h.Launched(l, errors.New("no places"))
		w.flush()
		return
	}
	procs := w.h.Bind(l)
	w.say("launch of operation %d: %v", l.Op, procs)
	for _, p := range procs {
		m := w.add(p.Proc, p.Host)
		m.coming = true
	}
	w.flush()
	if procs == nil {
		return
	}
	var err error
	if w.rng.IntN(8) == 0 {
		err = errors.New("no such program")
	}
	for _, p := range procs {
		m := w.procs[p.Proc.Serial]
		if m.forked = err == nil; err != nil {
			m.over, m.exited = true, true
		}
	}
	w.h.Launched(l, err)
	w.flush()
	for _, serial := range w.frees {
		w.reports = append(w.reports, report{w.procs[serial].host, control.Report{Kind: control.ReportFreed, Serial: serial}})
	}
	w.frees = nil
}

func (w *world) some() *member {
	var list []*member
	for n := uint32(1); n <= w.h.lastProc; n++ {
		if m := w.procs[n]; m != nil && m.forked && !m.over {
			list = append(list, m)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[w.rng.IntN(len(list))]
}

// anySet is a set that there may be.
func (w *world) anySet() uint32 {
	if w.rng.IntN(2) == 0 {
		return 0
	}
	return uint32(w.rng.IntN(int(w.h.lastSet) + 3))
}

func (w *world) request() change.Request {
	r := change.Request{Kind: change.Kind(1 + w.rng.IntN(5)), NoQueue: w.rng.IntN(6) == 0}
	n := 1 + w.rng.IntN(3)
	switch r.Kind {
	case change.Add:
		r.Join = []int{n}
		for range w.rng.IntN(2) {
			r.In = append(r.In, w.anySet())
		}
	case change.Sub:
		r.In, r.Leave = []uint32{w.anySet()}, 1
	case change.Grow:
		r.In, r.Join = []uint32{w.anySet()}, []int{n}
	case change.Shrink:
		r.In, r.Leave = []uint32{w.anySet()}, n
	case change.Replace:
		r.In, r.To = []uint32{w.anySet()}, 1+w.rng.IntN(8)
	}
	if w.rng.IntN(4) == 0 {
		r.Min, r.Max = w.rng.IntN(4), w.rng.IntN(9)
	}
	if w.rng.IntN(5) == 0 {
		r.Whole = time.Duration(w.rng.IntN(100)) * time.Second
	}
	return r
}

// step lets something happen.
func (w *world) step() {
	if len(w.reports) > 0 && w.rng.IntN(2) == 0 {
		w.deliver()
		return
	}
	if len(w.launches) > 0 && w.rng.IntN(3) == 0 {
		w.start()
		return
	}
	m := w.some()
	if m == nil {
		return
	}
	if !m.joined {
		if m.fate == Discarded && w.rng.IntN(2) == 0 {
			w.end(m)
			return
		}
		m.joined = true
		w.say("process %d joins", m.id.Serial)
		w.take(m.host, control.Report{Kind: control.ReportHello, Serial: m.id.Serial})
		return
	}
	switch k := w.rng.IntN(100); {
	case m.fate == Discarded:
		w.end(m)
	case m.change != nil && k < 50:
		c := m.change
		m.change = nil
		w.tell(m, &control.Op{Kind: control.KindReadied, Op: c.Op})
		w.tell(m, &control.Op{Kind: control.KindVoted, Op: c.Op})
		w.ask(m, &control.Await{Op: c.Op, Until: change.Committed})
		if w.rng.IntN(2) == 0 {
			w.ask(m, &control.Handed{Op: c.Op})
		}
	case k < 30 && len(m.sets) == 0:
		set := w.h.main // what its world was, or is
		if w.rng.IntN(10) == 0 {
			set = w.anySet()
		}
		w.ask(m, &control.Follow{Set: set, Options: w.options})
	case k < 36 && len(m.asks) < 3:
		coll := [...]uint32{w.h.main, w.h.proc(m.id).self, w.h.proc(m.id).world, w.anySet()}
		w.ask(m, &control.Follow{Set: coll[w.rng.IntN(4)], In: [...]uint32{w.h.main, w.anySet()}[w.rng.IntN(2)]})
	case k < 60:
		w.check(m)
	case k < 72:
		r := w.request()
		s := &control.Submit{Request: r, Parts: make([]control.SubmitPart, max(1, len(r.Parts)))}
		if w.rng.IntN(3) == 0 {
			s.Parts[0].Names = []string{fmt.Sprint("name", w.rng.IntN(3))}
		}
		w.ask(m, s)
	case k < 78:
		w.ofOp(m)
	case k < 80:
		w.hostile(m)
	case k < 82:
		w.end(m)
	case k < 84:
		w.leave(m)
	case k < 85 && len(w.h.hosts) > 1 && w.rng.IntN(20) == 0 && !w.lost[m.host]:
		w.lose(m.host)
	case k < 86 && len(m.asks) > 0 && w.rng.IntN(2) == 0:
		w.tell(m, &control.Set{Kind: control.KindUnfollow, Number: m.asks[0]})
		m.asks = m.asks[1:]
	case k < 86 && len(m.sets) > 0:
		w.tell(m, &control.Set{Kind: control.KindUnfollow, Number: m.sets[0]})
		m.sets = m.sets[1:]
	case k < 95:
		w.now += time.Duration(w.rng.IntN(20)) * time.Second
		if at, ok := w.h.Next(); ok && at <= w.now {
			w.say("%v", w.now)
			w.h.Tick()
			w.flush()
		}
	}
}

// check is a Check of all that a process follows.
func (w *world) check(m *member) {
	for _, op := range slices.Sorted(maps.Keys(w.h.ops)) {
		if w.options.Hold && w.rng.IntN(2) == 0 {
			w.tell(m, &control.Op{Kind: control.KindReleased, Op: op})
			break
		}
	}
	for _, s := range slices.Clone(m.sets) {
		g := w.pages[pageOn{s, m.host}]
		if g == nil || !g.fixed || m.handed[pageChange{s, g.change}] {
			continue
		}
		if g.word == 0 {
			g.word = change.IsAccepted
			w.word(m.host, s, g)
			if g.votes == 0 {
				g.word = change.IsCommitted
				w.word(m.host, s, g)
			}
		}
		if g.word == change.IsAccepted || g.word == change.IsCommitted {
			m.handed[pageChange{s, g.change}] = true
			w.ask(m, &control.Handed{Set: s, Change: g.change})
		}
		return
	}
}

// ofOp says or asks something of an operation that is the process's own.
func (w *world) ofOp(m *member) {
	if len(m.ops) == 0 {
		return
	}
	op := m.ops[w.rng.IntN(len(m.ops))]
	switch w.rng.IntN(4) {
	case 0:
		w.ask(m, &control.Op{Kind: control.KindWithdraw, Op: op})
	case 1:
		w.ask(m, &control.Await{Op: op, Until: change.State(1 + w.rng.IntN(7))})
	case 2:
		w.ask(m, &control.Update{Op: op, COL: []byte("col")})
	case 3:
		m.ops = slices.DeleteFunc(m.ops, func(n uint32) bool { return n == op })
		w.tell(m, &control.Op{Kind: control.KindForget, Op: op})
	}
}

// hostile says something about what may be nobody's.
func (w *world) hostile(m *member) {
	n, set := uint32(w.rng.IntN(20)), w.anySet()
	switch w.rng.IntN(10) {
	case 0:
		w.ask(m, &control.Op{Kind: control.KindWithdraw, Op: n})
	case 1:
		w.ask(m, &control.Handed{Set: set, Change: n})
	case 2:
		w.ask(m, &control.Handed{Op: n})
	case 3:
		w.tell(m, &control.Op{Kind: control.KindReleased, Op: n})
	case 4:
		w.tell(m, &control.Op{Kind: control.KindReadied, Op: n})
	case 5:
		w.tell(m, &control.Op{Kind: control.KindForget, Op: n})
	case 6:
		w.tell(m, &control.Set{Kind: control.KindUnfollow, Number: set})
	case 7:
		w.ask(m, &control.Update{Op: n})
	case 8:
		w.ask(m, &control.Await{Op: n, Until: change.Done})
	case 9:
		w.tell(m, &control.Op{Kind: control.KindVoted, Op: n})
	}
}

// lose loses the agent of a host, with all that runs there.
func (w *world) lose(host uint32) {
	w.say("host %d is lost", host)
	w.lost[host] = true
	for _, m := range w.procs {
		if m.host == host {
			m.over, m.exited = true, true
		}
	}
	for at := range w.pages {
		if at.host == host {
			delete(w.pages, at)
		}
	}
	w.reports = slices.DeleteFunc(w.reports, func(r report) bool { return r.host == host })
	w.h.HostLost(host, "pulled out")
	w.flush()
}

// endJob ends the job. Nobody waits for anything then.
func (w *world) endJob() {
	w.say("the job ends")
	w.h.End("over")
	w.flush()
	for _, m := range w.procs {
		if !m.over && len(m.asked) > 0 {
			w.fail("process %v still waits for %v", m.id, m.asked)
		}
	}
}

// finish ends all processes. Nothing may be left.
func (w *world) finish() {
	for range 1000 {
		for len(w.launches) > 0 {
			w.start()
		}
		for len(w.reports) > 0 {
			w.deliver()
		}
		m := w.some()
		if m == nil && len(w.launches) == 0 {
			break
		}
		if m != nil && w.rng.IntN(2) == 0 {
			w.leave(m)
		} else if m != nil {
			w.end(m)
		}
	}
	for _, m := range w.procs {
		if m.coming && m.fate == 0 && m.forked {
			w.fail("newcomer %v was neither kept nor discarded", m.id)
		}
	}
	if at, ok := w.h.Next(); ok {
		w.fail("a deadline at %v", at)
	}
	for what, n := range w.h.Sizes() {
		if n != 0 {
			w.fail("%d %s in the end: %+v", n, what, w.h.Sizes())
		}
	}
	for at := range w.pages {
		w.fail("the page of set %d is left on host %d", at.set, at.host)
	}
}

// TestSoakChanges: processes follow sets, ask for changes, come, go and die at
// random, on one host and on several. Each operation has one outcome, each newcomer
// one fate, and nothing is left.
func TestSoakChanges(t *testing.T) {
	ends := map[change.State]int{}
	seeds := uint64(500)
	if testlab.Long() {
		seeds = 20_000
	}
	for seed := range seeds {
		w := newWorld(t, seed, 1+int(seed%3), 4)
		for range 300 {
			w.step()
		}
		if seed%2 == 0 {
			w.endJob()
		}
		w.finish()
		for s, n := range w.ends {
			ends[s] += n
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Log(ends)
	for _, s := range []change.State{change.Done, change.Refused, change.Cancelled, change.RolledBack} {
		if ends[s] < 20 {
			t.Errorf("%d operations ended %v", ends[s], s)
		}
	}
}
