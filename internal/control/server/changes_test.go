// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/changepage"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

// elastic is a rig whose sets change. What its launcher starts waits in started.
type elastic struct {
	*rig
	mu      sync.Mutex
	started [][]protocol.StartProc
	fates   []string // what the launcher was told of processes, as "kept 3 4"
	fail    error    // of Launch
}

func newElastic(t *testing.T, n int, change func(*Config)) *elastic {
	e := &elastic{}
	e.rig = newRig(t, n, func(cfg *Config) {
		note := func(what string) func([]wire.ProcID) {
			return func(ps []wire.ProcID) {
				text := what
				for _, p := range ps {
					text += fmt.Sprint(" ", p.Serial)
				}
				e.mu.Lock()
				defer e.mu.Unlock()
				e.fates = append(e.fates, text)
			}
		}
		cfg.Discard, cfg.Kept, cfg.Leave, cfg.Terminate, cfg.Main = note("discard"), note("kept"), note("leave"), note("terminate"), note("main")
		cfg.Stay = note("stay")
		cfg.Launch = func(l *Launch) error {
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.fail == nil {
				e.started = append(e.started, l.Procs)
			}
			return e.fail
		}
		if change != nil {
			change(cfg)
		}
	})
	return e
}

// told waits until the launcher was told this.
func (e *elastic) told(s string) {
	e.t.Helper()
	controltest.WaitFor(e.t, s, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return slices.Contains(e.fates, s)
	})
}

// newcomers waits for the i-th Launch and lets the processes join.
func (e *elastic) newcomers(i int) []*child {
	e.t.Helper()
	var ps []protocol.StartProc
	controltest.WaitFor(e.t, "a launch", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		if i < len(e.started) {
			ps = e.started[i]
		}
		return ps != nil
	})
	if e.links != nil {
		e.passed()
	}
	list := make([]*child, len(ps))
	for i, p := range ps {
		list[i] = e.joinAs(p, 4000+int(p.Proc.Serial))
	}
	return list
}

// watcher is a process that follows the changes of a set.
type watcher struct {
	*child
	set    wire.Set
	page   changepage.Page
	member *changepage.Member
	was    *changepage.Member // of the page before
	at     uint64
}

var everyStep = protocol.Options{Step: 1, Lookahead: 1}

func (k *child) follow(set wire.Set) *watcher {
	k.t.Helper()
	w := &watcher{child: k}
	w.view(set, &protocol.Subscribe{Set: set.Number, Options: everyStep})
	return w
}

// view asks for a page and maps it.
func (w *watcher) view(set wire.Set, m protocol.Message) []byte {
	w.t.Helper()
	var b protocol.PageBody
	fds, err := w.AskFiles(bg, m, &b)
	w.must(err)
	if b.X.Bytes == 0 {
		return b.Rest
	}
	mem, err := segment.Map(fds[0], b.X.Off, b.X.Bytes, true)
	w.must(err)
	w.t.Cleanup(func() { segment.Unmap(mem) })
	for _, fd := range fds {
		unix.Close(fd)
	}
	w.page, err = changepage.View(mem, b.Members)
	w.must(err)
	w.was = w.member
	w.set, w.member = set, w.page.Member(b.Place, everyStep.Step, everyStep.Lookahead)
	return b.Rest
}

func (k *child) submit(r change.Request) protocol.OpBody {
	k.t.Helper()
	var b protocol.OpBody
	k.must(k.Ask(bg, &protocol.Submit{Request: r, Parts: make([]protocol.SubmitPart, max(1, len(r.Parts)))}, &b))
	return b
}

func (k *child) await(op uint32, until change.State) protocol.OpBody {
	k.t.Helper()
	var b protocol.OpBody
	k.must(k.Ask(bg, &protocol.Await{Op: op, Until: until}, &b))
	return b
}

// TestGrowAndShrink: newcomers come to the main set, and some of the old go, each as
// all members are handed it by the page.
func TestGrowAndShrinkMain(t *testing.T) {
	e := newElastic(t, 2, nil)
	var ws []*watcher
	for _, k := range e.joinAll() {
		ws = append(ws, k.follow(e.world))
	}
	e.told("main 1 2")
	op := ws[0].submit(change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{2}})
	if op.Op == 0 || op.State > change.Launching {
		t.Fatalf("%+v", op)
	}
	news := e.newcomers(0)
	for rank, k := range news {
		c := k.w.Change
		if c == nil || c.Op != op.Op || c.Role != protocol.RoleJoining || c.Result.Members.Len() != 4 || c.Inputs[0].Number != e.world.Number ||
			c.Joining[0].Number != k.w.World.Number || k.w.World.Members.Index(k.id) != rank {
			t.Errorf("a newcomer is welcomed to %+v", c)
		}
	}
	if b := ws[1].await(op.Op, change.Ready); b.State != change.Ready {
		t.Fatalf("%+v", b)
	}
	called := func(want string) {
		t.Helper()
		var list []string
		for _, p := range e.Snapshot() {
			list = append(list, fmt.Sprintf("%s of %d", p.Called(), p.Size))
		}
		if got := "[" + strings.Join(list, ", ") + "]"; got != want {
			t.Errorf("processes are called %s, want %s", got, want)
		}
	}
	called("[rank 0 of 2, rank 1 of 2, new.0 of 2, new.1 of 2]")
	var result wire.Set
	for i, w := range ws {
		old := w.page
		c := w.checkVote()
		result = c.Result
		if c.Op != op.Op || c.Role != protocol.RoleStaying || c.Result.Members.Len() != 4 {
			t.Errorf("member %d was handed %+v", i, c)
		}
		if old.Missing(1) != 4-i-1 {
			t.Errorf("%d votes are missing after %d", old.Missing(1), i+1)
		}
	}
	for _, k := range news {
		k.must(k.Tell(&protocol.Op{Kind: protocol.KindVoted, Op: op.Op}))
		k.must(k.Tell(&protocol.Op{Kind: protocol.KindVoted, Op: op.Op})) // counts once
	}
	for _, k := range news {
		if b := k.await(op.Op, change.Committed); b.State < change.Committed || b.State > change.Done || b.Iteration == 0 {
			t.Errorf("%+v", b)
		}
		w := k.follow(result)
		ws = append(ws, w)
	}
	e.told("main 1 2 3 4")
	e.told("kept 3 4")
	if s, err := ws[0].Lookup("gompi://main"); err != nil || s.Number != result.Number {
		t.Errorf("the main set is %v, %v", s, err)
	} else {
		ws[0].ReleaseSet(s.Number)
	}

	called("[rank 0 of 4, rank 1 of 4, rank 2 of 4, rank 3 of 4]")

	op = ws[2].submit(change.Request{Kind: change.Shrink, In: []uint32{0}, Out: []wire.ProcID{ws[0].id, ws[3].id}})
	if op.State != change.Ready {
		t.Fatalf("%+v", op)
	}
	for i, w := range ws {
		c := w.checkVote()
		if want := []protocol.ChangeRole{protocol.RoleLeaving, protocol.RoleStaying, protocol.RoleStaying, protocol.RoleLeaving}[i]; c.Role != want {
			t.Errorf("member %d is %d", i, c.Role)
		}
	}
	e.told("main 2 3")
	e.told("leave 1 4")
	if b := ws[2].await(op.Op, change.Committed); b.State != change.Committed {
		t.Errorf("%+v", b)
	}
	for _, i := range []int{0, 3} {
		ws[i].must(ws[i].Finalize())
		ws[i].Close()
		e.Exited(ws[i].id, "exited with status 0", true)
	}
	if b := ws[2].await(op.Op, change.Done); b.State != change.Done {
		t.Errorf("%+v", b)
	}
	e.over(ws[1], ws[2])
}

// TestNewcomersAreNoNews: old ranks hear nothing of newcomers, however many they are,
// but once, at the commit, how many share the host.
func TestNewcomersAreNoNews(t *testing.T) {
	e := newElastic(t, 2, nil)
	var ws []*watcher
	for _, k := range e.joinAll() {
		ws = append(ws, k.follow(e.world))
	}
	next := func(k *watcher, want protocol.Event) {
		t.Helper()
		ev, err := k.Next()
		k.must(err)
		if want.ID == 0 {
			ev = protocol.Event{Kind: ev.Kind}
		}
		if ev != want {
			t.Errorf("%v is told %+v, want %+v", k.id, ev, want)
		}
	}
	quiet := func(id uint64) { // what was told before comes before
		t.Helper()
		for i, k := range ws[:2] {
			other := ws[1-i]
			k.must(k.Ping(other.id, id))
			next(other, protocol.Event{Kind: protocol.EvPing, Proc: k.id, ID: id})
			k.must(other.Pong(k.id, id))
			next(k, protocol.Event{Kind: protocol.EvPong, Proc: other.id, ID: id})
		}
	}
	op := ws[0].submit(change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{6}})
	news := e.newcomers(0)
	ws[1].await(op.Op, change.Ready)
	quiet(1)
	for _, w := range ws {
		w.checkVote()
	}
	for _, k := range news {
		k.must(k.Tell(&protocol.Op{Kind: protocol.KindVoted, Op: op.Op}))
	}
	ws[0].await(op.Op, change.Committed)
	for _, w := range ws {
		next(w, protocol.Event{Kind: protocol.EvHost})
	}
	quiet(2)
}

// begun waits until a change is on the page: the head calls it Ready a little earlier.
func (w *watcher) begun() (c changepage.Change) {
	w.t.Helper()
	controltest.WaitFor(w.t, "a change on the page", func() bool {
		n, s := w.page.Last()
		c = n
		return n != 0 && s == changepage.Open
	})
	return c
}

// checkVote is check, and a vote.
func (w *watcher) checkVote() *protocol.ChangeBody {
	w.t.Helper()
	member, set := w.member, w.set
	var c changepage.Change
	controltest.WaitFor(w.t, "a change", func() bool {
		w.at++
		c = w.member.Check(w.at)
		return c != 0
	})
	w.must(w.Tell(&protocol.StatusWord{Set: set.Number, Change: uint32(c)}))
	var b protocol.ChangeBody
	at := w.at
	rest := w.view(wire.Set{}, &protocol.GetChange{Set: set.Number, Change: uint32(c)})
	w.must(protocol.Decode(&b, rest))
	w.set, w.at = b.Result, at
	if b.Votes && member.Vote(c) {
		w.must(w.Tell(&protocol.StatusWord{Set: set.Number, Change: uint32(c)}))
	}
	return &b
}

// over ends the processes that are left. Nothing stays.
func (e *elastic) over(left ...*watcher) {
	e.t.Helper()
	for _, w := range left {
		w.must(w.Finalize())
		w.Close()
		e.Exited(w.id, "exited with status 0", true)
	}
	for _, what := range []string{
		"processes", "sets", "bytes in sets", "operations", "followed", "places", "pages", "requests", "of changes: operations",
		"of changes: watches", "of changes: newcomers", "of changes: leavers", "of changes: undecided sets",
	} {
		e.reach(what, 0)
	}
}

// TestChangeOfSeveralSets: two sets grow together. The head finds where all are handed
// it and counts the votes; a newcomer's death before the last one undoes both.
func TestChangeOfSeveralSets(t *testing.T) {
	e := newElastic(t, 4, func(cfg *Config) { cfg.FaultTolerant = true })
	ks := e.joinAll()
	var ws []*watcher
	var sets []wire.Set
	for i := range 2 {
		set, err := ks[2*i].DefineSet(wire.MembersOf(ks[2*i].id, ks[2*i+1].id))
		ks[2*i].must(err)
		sets = append(sets, set)
		ws = append(ws, ks[2*i].follow(set), ks[2*i+1].follow(set))
	}
	both := change.Request{Kind: change.Multi, Parts: []change.Request{
		{Kind: change.Grow, In: []uint32{sets[0].Number}, Join: []int{1}},
		{Kind: change.Grow, In: []uint32{sets[1].Number}, Join: []int{1}},
	}}
	for try := range 2 {
		op := ws[0].submit(both)
		if op.Op == 0 || len(op.Outputs) != 2 {
			t.Fatalf("%+v", op)
		}
		news := e.newcomers(try)
		if try == 0 { // of members none of whom has begun the first finds where all are
			var c changepage.Change
			controltest.WaitFor(t, "a change that is asked about", func() bool { c = ws[2].page.PausedChange(); return c != 0 })
			if b := ws[3].await(op.Op, change.Ready); b.State != change.Ready || ws[2].member.Check(0) != changepage.Paused {
				t.Fatalf("%+v", b)
			}
			ws[2].must(ws[2].Tell(&protocol.StatusWord{Set: ws[2].set.Number, Change: uint32(c)}))
		}
		if b := ws[3].await(op.Op, change.Adopting); b.State != change.Adopting {
			t.Fatalf("%+v", b)
		}
		for i, w := range ws {
			page, set := w.page, w.set
			c := w.checkVote()
			if c.Op != op.Op || c.Votes || c.Result.Members.Len() != 3 || c.Inputs[0].Number != sets[i/2].Number {
				t.Errorf("member %d was handed %+v", i, c)
			}
			if i < 3 {
				w.must(w.Tell(&protocol.Op{Kind: protocol.KindVoted, Op: op.Op}))
			}
			if try == 0 { // this page is to be looked at again
				w.page, w.set, w.member = page, set, w.was
			}
		}
		if try == 0 {
			news[0].Close()
			e.Exited(news[0].id, "killed", false)
			if b := news[1].await(op.Op, change.Committed); b.State != change.RolledBack || b.Why != protocol.WhyDied {
				t.Errorf("%+v", b)
			}
			e.told(fmt.Sprintf("discard %d %d", news[0].id.Serial, news[1].id.Serial))
			if s, ok := ws[0].page.Decision(1); !ok || s != changepage.RolledBack {
				t.Errorf("the page says %v, %v", s, ok)
			}
			news[1].Close()
			e.Exited(news[1].id, "exited with status 0", true)
			continue
		}
		for _, k := range news {
			k.must(k.Tell(&protocol.Op{Kind: protocol.KindVoted, Op: op.Op}))
			k.must(k.Tell(&protocol.Op{Kind: protocol.KindVoted, Op: op.Op}))
			k.settle()
		}
		if b := news[0].await(op.Op, change.Adopting); b.State != change.Adopting {
			t.Errorf("committed without the vote of one: %+v", b)
		}
		ws[3].must(ws[3].Tell(&protocol.Op{Kind: protocol.KindVoted, Op: op.Op}))
		for _, k := range append(news, ks...) {
			if b := k.await(op.Op, change.Committed); b.State < change.Committed || b.State > change.Done {
				t.Errorf("%+v", b)
			}
		}
		for _, k := range news {
			ws = append(ws, &watcher{child: k})
		}
	}
	for i, k := range ks {
		if i%2 == 0 {
			k.must(k.ReleaseSet(sets[i/2].Number))
		}
	}
	e.over(ws...)
}

// The launcher is told of who was to leave, and does not.
func TestLeaverStays(t *testing.T) {
	e := newElastic(t, 2, nil)
	var ws []*watcher
	for _, k := range e.joinAll() {
		ws = append(ws, k.follow(e.world))
	}
	op := ws[0].submit(change.Request{Kind: change.Shrink, In: []uint32{0}, Leave: 1})
	if op.State != change.Ready || e.MayLeave(ws[0].id) || !e.MayLeave(ws[1].id) {
		t.Errorf("%+v; who may leave: %v, %v", op, e.MayLeave(ws[0].id), e.MayLeave(ws[1].id))
	}
	var b protocol.OpBody
	ws[0].must(ws[0].Ask(bg, &protocol.Op{Kind: protocol.KindWithdraw, Op: op.Op}, &b))
	e.told("stay 2")
	if b.State != change.Cancelled || e.MayLeave(ws[1].id) {
		t.Errorf("%+v", b)
	}
}
