// SPDX-License-Identifier: Apache-2.0

package head

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
	"gompi/internal/test/testlab"
)

// world is a head with agents, a launcher and processes that are a few maps, and do
// whatever occurs to them. Everything is said over the wire.
type world struct {
	t   *testing.T
	rng *rand.Rand
	h   *Head
	now time.Duration

	options  protocol.Options
	lost     map[uint32]bool // hosts
	procs    map[uint32]*member
	pages    map[pageOn]*sheet
	launches []*Launch
	groups   []*Start
	reports  []report // that are on their way to the head
	frees    []uint32 // processes of which an agent has nothing more
	todo     []func() // what follows from what the head has said
	lastID   uint32
	ops      map[uint32]change.State // as they were told last
	read     map[uint32]bool         // operations that members have found committed
	ends     map[change.State]int
	log      []string
	last     protocol.Reply // to a request
	talks    int            // of how much else processes talk at a time
	declines int            // of changes by processes that have not voted
}

type report struct {
	host uint32
	r    protocol.Report
}

func newWorld(t *testing.T, seed uint64, hosts, n int) *world {
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 2)), lost: map[uint32]bool{}, procs: map[uint32]*member{}, pages: map[pageOn]*sheet{},
		ops: map[uint32]change.State{}, read: map[uint32]bool{}, ends: map[change.State]int{},
	}
	w.options = protocol.Options{Step: 1, Lookahead: 1, Hold: seed%4 == 1, Prepare: seed%5 == 1}
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
	set, err := w.h.Join(make([][]string, n), places)
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
	m := &member{id: id, host: host, asked: map[uint32]protocol.Message{}, handed: map[pageChange]bool{}}
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
	case e.Start != nil:
		w.groups = append(w.groups, e.Start)
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
		case e.Fate == Stays && m == nil && id.Serial <= w.h.lastProc:
			// A newcomer that is not started yet, in a set that was defined of it and others: the
			// launcher takes no notice.
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

func (w *world) order(host uint32, o *protocol.Command) {
	m := w.procs[o.Serial]
	switch o.Kind {
	case protocol.CmdWelcome:
		var b protocol.Welcome
		if err := protocol.Decode(&b, o.Frame); err != nil {
			w.fail("a welcome is %v", err)
		}
		m.change = b.Change
		if (b.Change != nil) != m.coming {
			w.fail("process %v is welcomed with the change %+v", m.id, b.Change)
		}
	case protocol.CmdSend:
		f, n, err := protocol.ParseHead(o.Frame)
		if err != nil {
			w.fail("%v", err)
		}
		if f.Kind == protocol.KindReply && m != nil {
			w.answered(m, f.ID, o.Frame[protocol.FrameHead:][:n])
		}
	case protocol.CmdSubscribe:
		at := pageOn{o.Page.Set, host}
		if w.pages[at] == nil {
			w.pages[at] = &sheet{}
		}
		if m != nil {
			w.reply(m, o.ID, &protocol.PageBody{Rest: o.Frame})
		}
	case protocol.CmdPage:
		w.page(host, &o.Page)
	case protocol.CmdAbandon:
		if !m.forked {
			w.frees = append(w.frees, o.Serial)
		}
	case protocol.CmdShut:
		if !m.unwanted || !strings.HasPrefix(o.Text, protocol.ErrEnding.Error()) {
			w.fail("process %+v is told %s", m, o.Text)
		}
		w.end(m)
	}
}

func (w *world) take(host uint32, r protocol.Report) {
	w.h.Take(host, &r)
	w.flush()
}

// deliver lets the head hear the oldest report.
func (w *world) deliver() {
	r := w.reports[0]
	w.reports = w.reports[1:]
	w.say("report %+v", r)
	w.take(r.host, r.r)
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
		for len(w.launches)+len(w.groups) > 0 {
			if len(w.launches) > 0 {
				w.start()
			} else {
				w.startGroup()
			}
		}
		w.free()
		for len(w.reports) > 0 {
			w.deliver()
		}
		m := w.some()
		if m == nil && len(w.launches)+len(w.groups)+len(w.frees) == 0 {
			break
		}
		if m != nil && w.rng.IntN(2) == 0 {
			w.leave(m)
		} else if m != nil {
			w.end(m)
		}
	}
	for _, m := range w.procs {
		if m.coming && m.fate == 0 && m.forked && !m.unwanted {
			w.fail("newcomer %v was neither kept nor discarded", m.id)
		}
	}
	if at, ok := w.h.Next(); ok {
		for _, o := range w.h.ops {
			w.say("operation %+v, ballot %+v, waits for %s", *o, o.ballot, w.h.waitsFor(o))
		}
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

// soak is the life of a job.
func (w *world) soak(seed uint64) {
	defer func() {
		if x := recover(); x != nil {
			w.say("%s", debug.Stack())
			w.fail("seed %d: panic: %v", seed, x)
		}
		if w.t.Failed() {
			w.t.Logf("seed %d", seed)
		}
	}()
	for range 300 {
		w.step()
	}
	if seed%2 == 0 {
		w.endJob()
	}
	w.finish()
}

// TestSoakChanges: processes follow sets, ask for changes, come, go and die at
// random, on one host and on several. Each operation has one outcome, each newcomer
// one fate, and nothing is left. In three of four jobs they also say anything else of sets
// and operations, now and then very much of it. GOMPI_TEST_TIME=1h: as long as that.
func TestSoakChanges(t *testing.T) {
	ends, declines := map[change.State]int{}, 0
	seeds := uint64(testlab.Rounds(500, 20_000))
	d, began := testlab.Duration(), time.Now()
	seed := uint64(0)
	if os.Getenv("GOMPI_TEST_SEED") != "" {
		seed = testlab.Seed(t)
	}
	first := seed
	for ; seed < seeds || time.Since(began) < d; seed++ {
		w := newWorld(t, seed, 1+int(seed%3), 4)
		w.talks = []int{0, 1, 3, 10}[seed/3%4]
		w.soak(seed)
		declines += w.declines
		for s, n := range w.ends {
			ends[s] += n
		}
	}
	t.Log(seed, ends, declines)
	if seed-first < 100 {
		return // too few to say so
	}
	if declines < 20 {
		t.Errorf("%d processes have declined a change", declines)
	}
	for _, s := range []change.State{change.Done, change.Refused, change.Cancelled, change.RolledBack} {
		if ends[s] < 20 {
			t.Errorf("%d operations ended %v", ends[s], s)
		}
	}
}
