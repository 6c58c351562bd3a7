// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"gompi/internal/control/change"
	"gompi/internal/control/client"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
)

// A tool asks for a change, hears of each state that it comes to, and sees it and
// the sets that it makes.
func TestToolChangesSets(t *testing.T) {
	e := newElastic(t, 2, nil)
	dial := func() *client.Tool {
		tool, err := client.DialTool(bg, e.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tool.Close() })
		return tool
	}
	tool, other := dial(), dial()
	ask := func(m protocol.Resize) *protocol.OpReport {
		t.Helper()
		var last *protocol.OpReport
		if err := tool.Resize(bg, &m, func(r *protocol.OpReport) { last = r }); err != nil || last == nil {
			t.Fatalf("%+v: %+v, %v", m, last, err)
		}
		return last
	}

	members := e.joinAll()
	if r := ask(protocol.Resize{By: 2}); r.Op.State != change.Refused || r.Op.Why != protocol.WhyNoWatch || r.Inputs[0].Name != protocol.MainURI || r.Before != 2 {
		t.Errorf("nobody watches: %+v", r)
	}
	if err := tool.Resize(bg, &protocol.Resize{Set: "app://none", By: 1}, func(*protocol.OpReport) { t.Error("news of nothing") }); !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("no such set: %v", err)
	}
	var ws []*watcher
	for _, k := range members {
		ws = append(ws, k.follow(e.world))
	}

	var states []change.State
	var last *protocol.OpReport
	waits := make(chan string, 100)
	done := controltest.Async(t, func() error {
		return tool.Resize(bg, &protocol.Resize{By: 2}, func(r *protocol.OpReport) {
			states, last = append(states, r.Op.State), r
			select {
			case waits <- r.Waits:
			default:
			}
		})
	})
	news := e.newcomers(0)
	controltest.WaitFor(t, "ready", func() bool { return strings.Contains(<-waits, "ranks 0, 1 to ") })
	ops, err := other.Ops(bg)
	if err != nil || len(ops) != 1 || ops[0].Op.State != change.Ready || ops[0].Joins != 2 || ops[0].After != 4 {
		t.Errorf("under way: %+v, %v", ops, err)
	}
	sets, err := other.Sets(bg)
	if err != nil || len(sets) != 3 || !sets[0].Main || sets[0].Watched != 2 || sets[0].Made != "" ||
		sets[1].Size != 2 || sets[1].Made != "grow" || !slices.Equal(sets[2].Of, []uint32{e.world.Number}) || sets[2].Size != 4 || !sets[2].Pending {
		t.Errorf("sets: %+v, %v", sets, err)
	}
	for _, w := range ws {
		w.checkVote()
	}
	for _, k := range news {
		k.must(k.Tell(&protocol.Op{Kind: protocol.KindVoted, Op: ops[0].Op.Op}))
	}
	if err := done(); err != nil || last.Op.State != change.Done || last.Op.Iteration == 0 || !slices.IsSorted(states) {
		t.Fatalf("%v %+v %v", states, last, err)
	}
	if x := last.Op.Times; !(0 < x.Granted && x.Granted <= x.Ordered && x.Ordered <= x.Ready && x.Ready <= x.Adopted && x.Adopted <= x.Decided && x.Decided <= x.Gone) || x.Asked.IsZero() {
		t.Errorf("times %+v", x)
	}

	// Of one that nobody waits for the list tells, too; a tool that goes leaves it alone.
	for _, k := range news {
		ws = append(ws, k.follow(ws[0].set))
	}
	if r := ask(protocol.Resize{To: 3, Detach: true}); r.Op.State.Over() || r.Op.Op == 0 {
		t.Errorf("detached: %+v", r)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if err := dial().Resize(ctx, &protocol.Resize{By: -1}, func(*protocol.OpReport) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for _, w := range ws {
		w.checkVote()
	}
	ws[3].must(ws[3].Finalize())
	ws[3].Close()
	e.Exited(ws[3].id, "exited with status 0", true)
	controltest.WaitFor(t, "an operation that is over", func() bool {
		ops, err = tool.Ops(bg)
		return err == nil && len(ops) >= 2 && ops[1].Op.State == change.Done
	})
	if o := ops[1]; o.Kind != change.Replace || o.Leaves != 1 || o.Before != 4 || o.After != 3 || o.Op.Times.Gone == 0 || len(o.Op.Outputs) != 0 {
		t.Errorf("%+v", o)
	}
	tool.Close()
	other.Close()
	e.over(ws[:3]...)
}

// What is over is remembered, but not for ever.
func TestToolSeesLatestOperations(t *testing.T) {
	e := newElastic(t, 2, nil)
	var ws []*watcher
	for _, k := range e.joinAll() {
		ws = append(ws, k.follow(e.world))
	}
	w := ws[0]
	const all = 40
	for range all {
		op := w.submit(change.Request{Kind: change.Shrink, In: []uint32{0}, Leave: 1})
		var b protocol.OpBody
		w.must(w.Ask(bg, &protocol.Op{Kind: protocol.KindWithdraw, Op: op.Op}, &b))
		w.must(w.Tell(&protocol.Op{Kind: protocol.KindForget, Op: op.Op}))
	}
	tool, err := client.DialTool(bg, e.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close()
	ops, err := tool.Ops(bg)
	if err != nil || len(ops) >= all/2 || ops[len(ops)-1].Op.Op != all || ops[len(ops)-1].Op.State != change.Cancelled {
		t.Errorf("%+v, %v", ops, err)
	}
	e.over(ws...)
}

// TestAcrossToolChangesSets: on a host of its own, what a tool asks and is told
// crosses the connection of agent and head.
func TestAcrossToolChangesSets(t *testing.T) { TestToolChangesSets(t) }

// A tool sees how long it is what a process says of an operation for the resource
// manager, and what it says later, until the operation is granted.
func TestToolSeesCOL(t *testing.T) {
	e := newElastic(t, 2, func(cfg *Config) { cfg.Slots = 3 })
	tool, err := client.DialTool(bg, e.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close()
	var ws []*watcher
	for _, k := range e.joinAll() {
		ws = append(ws, k.follow(e.world))
	}
	sees := func(op uint32, s change.State, n int) {
		t.Helper()
		if ops, err := tool.Ops(bg); err != nil || len(ops) != 1 || ops[0].Op.Op != op || ops[0].Op.State != s || ops[0].COL != n {
			t.Errorf("%+v, %v, want %v and %d bytes", ops, err, s, n)
		}
	}
	w := ws[0]
	launched, err := w.Spawn(bg, nil, 1)
	w.must(err)
	var b protocol.OpBody
	r := change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{1}}
	w.must(w.Ask(bg, &protocol.Submit{Request: r, Parts: make([]protocol.SubmitPart, 1), COL: make([]byte, 512)}, &b))
	sees(b.Op, change.Queued, 512)
	w.must(w.Ask(bg, &protocol.Update{Op: b.Op, COL: []byte("{}")}, &protocol.Empty{}))
	sees(b.Op, change.Queued, 2)
	e.Exited(launched.Members.At(0), "exited with status 0", true)
	w.await(b.Op, change.Granted)
	if err := w.Ask(bg, &protocol.Update{Op: b.Op, COL: []byte("{...}")}, &protocol.Empty{}); !errors.Is(err, protocol.ErrRefused) {
		t.Errorf("once it is granted: %v", err)
	}
	w.must(w.Ask(bg, &protocol.Op{Kind: protocol.KindWithdraw, Op: b.Op}, &protocol.OpBody{}))
	sees(b.Op, change.Cancelled, 2)
}
