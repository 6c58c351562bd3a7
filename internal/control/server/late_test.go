// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/control/change"
	"gompi/internal/control/client"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
)

// A tool is told in each state which processes an operation waits for, by rank in the
// main set.
func TestToolNamesTheLate(t *testing.T) {
	e := newElastic(t, 3, nil)
	ks := e.joinAll()
	tool, err := client.DialTool(bg, e.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close()
	waits := func(op uint32, want string) {
		t.Helper()
		controltest.WaitFor(t, want, func() bool {
			list, err := tool.Ops(bg)
			if err != nil {
				t.Fatal(err)
			}
			for i := range list {
				if r := &list[i]; r.Op.Op == op && r.Waits == want && r.For > 0 {
					return true
				}
			}
			return false
		})
	}
	ws := []*watcher{ks[0].follow(e.world), ks[1].follow(e.world)}
	grow := change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{2}}
	op := ws[0].submit(grow).Op
	next := ws[0].submit(grow).Op
	waits(op, "new.0, new.1 to join")
	waits(next, "operation 1, which is before it")
	news := e.newcomers(0)
	waits(op, "rank 2 to watch the set")
	ws = append(ws, ks[2].follow(e.world))
	waits(op, "ranks 0, 1, 2 to check; the votes of new.0, new.1")
	news[1].must(news[1].Tell(&protocol.Op{Kind: protocol.KindVoted, Op: op}))
	ws[0].checkVote()
	waits(op, "ranks 1, 2 to come to iteration 2; the votes of new.0")
	for ws[1].member.Check(ws[1].at) == 0 {
		ws[1].at++
	}
	waits(op, "rank 2 to come to iteration 2; the votes of rank 1, new.0")
	for ws[2].member.Check(ws[2].at) == 0 {
		ws[2].at++
	}
	n, _ := ws[2].page.Last()
	ws[2].member.Vote(n)
	waits(op, "the votes of rank 1, new.0")
	e.Exited(ws[2].id, "was killed", false)
	if b := ws[0].await(op, change.Committed); b.State != change.RolledBack || b.Why != protocol.WhyDied {
		t.Errorf("%+v", b)
	}
}

// While members hold a change back, and data come, its deadline stands still; then it
// is over.
func TestDeadlineStandsWhileBytesCome(t *testing.T) {
	var now atomic.Int64
	now.Store(1)
	e := newElastic(t, 2, func(cfg *Config) { cfg.Now = func() time.Duration { return time.Duration(now.Load()) } })
	var ws []*watcher
	for _, k := range e.joinAll() {
		w := &watcher{child: k}
		w.view(e.world, &protocol.Subscribe{Set: e.world.Number, Options: protocol.Options{Step: 1, Lookahead: 1, Hold: true}})
		ws = append(ws, w)
	}
	op := ws[0].submit(change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{1}, ToAccept: time.Hour}).Op
	e.newcomers(0)
	ws[1].await(op, change.Ready)
	ws[1].begun()
	tool, err := client.DialTool(bg, e.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close()
	hour := func() change.State {
		for _, d := range []time.Duration{time.Hour, 10 * time.Second} {
			now.Add(int64(d))
			e.tick()
			if _, err := tool.Ops(bg); err != nil { // looks at the page itself, after that
				t.Fatal(err)
			}
		}
		return ws[1].await(op, change.Queued).State
	}
	for range 3 {
		ws[1].member.AddBytes(1)
		if s := hour(); s != change.Ready {
			t.Fatalf("%v while data come", s)
		}
	}
	if s := hour(); s != change.RolledBack {
		t.Errorf("%v when no data come", s)
	}
	if b := ws[0].await(op, change.Committed); b.Why != protocol.WhyDeadline || !strings.Contains(b.Text, "ranks 0, 1 to release it") {
		t.Errorf("%v %q", b.Why, b.Text)
	}
}

// The message of a deadline that is over while members take a change up names who has
// not come so far.
func TestDeadlineNamesTheLate(t *testing.T) {
	for name, c := range map[string]struct {
		r    change.Request
		want string
	}{
		"to be handed it": {change.Request{ToAccept: time.Hour}, "the deadline is over: it waited for ranks 0, 1 to come to iteration 1; the votes of new.0"},
		"to commit":       {change.Request{Whole: time.Hour}, "the deadline is over: it waited for rank 1 to come to iteration 1; the votes of new.0"},
	} {
		t.Run(name, func(t *testing.T) {
			var now atomic.Int64
			now.Store(1)
			e := newElastic(t, 2, func(cfg *Config) { cfg.Now = func() time.Duration { return time.Duration(now.Load()) } })
			var ws []*watcher
			for _, k := range e.joinAll() {
				ws = append(ws, k.follow(e.world))
			}
			c.r.Kind, c.r.In, c.r.Join = change.Grow, []uint32{0}, []int{1}
			op := ws[0].submit(c.r).Op
			e.newcomers(0)
			ws[1].await(op, change.Ready)
			n := ws[1].begun()
			controltest.WaitFor(t, "an iteration", func() bool {
				ws[1].member.Check(0)
				_, ok := ws[1].page.Agreed(n)
				return ok
			})
			if c.r.Whole > 0 {
				ws[0].checkVote()
			}
			now.Store(int64(2 * time.Hour))
			e.tick()
			b := ws[1].await(op, change.Committed)
			if b.State != change.RolledBack || b.Why != protocol.WhyDeadline || !strings.HasPrefix(b.Text, c.want) {
				t.Errorf("%v %v %q, want %q", b.State, b.Why, b.Text, c.want)
			}
		})
	}
}
