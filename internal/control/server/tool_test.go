// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/control/client"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

func TestStacksAndRollCall(t *testing.T) {
	r := newRig(t, 4, nil)
	r.Started(r.procs[0].Proc, os.Getpid())
	c, w, err := client.Dial(r.Addr(), r.Token(r.procs[0].Proc))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mem, err := segment.Map(w.Segment, segment.CallRegistry, segment.CallRegistryBytes, true)
	if err != nil {
		t.Fatal(err)
	}
	defer segment.Unmap(mem)
	unix.Close(w.Segment)
	unix.Close(w.Bell)
	book, err := callreg.Open(mem)
	if err != nil {
		t.Fatal(err)
	}
	e := callreg.Entry{Op: "Recv", Peer: 1, PeerProc: r.procs[1].Proc, CommSize: 4, Since: time.Unix(5, 6), Caller: "x.go:1 f", Comm: r.world.Context(w.Self.Job, 0)}
	book.Enter(&e)
	a := &child{Client: c, t: t, id: w.Self}
	b, silent := r.join(1), r.join(2)

	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	got := make(chan []protocol.StackReport, 1)
	go func() { got <- r.Stacks(ctx) }()
	b.must(b.Stacks(protocol.Stacks{ID: b.expect(protocol.EvStacks, wire.ProcID{}).ID}))
	a.must(a.Stacks(protocol.Stacks{ID: a.expect(protocol.EvStacks, wire.ProcID{}).ID, Calls: book.Calls(func(int, *callreg.Entry) {}), Queues: []byte("queues"), Stacks: make([]byte, protocol.MaxReport+9)}))
	silent.expect(protocol.EvStacks, wire.ProcID{})
	a.settle()
	b.settle()
	cancel()
	list := <-got
	if len(list) != 4 || !list[0].Answered || !list[1].Answered || list[2].Answered || list[3].Answered {
		t.Fatalf("reports %+v", list)
	}
	if string(list[0].Queues) != "queues" || len(list[0].Stacks) != protocol.MaxReport || !reflect.DeepEqual(list[0].Calls, []callreg.Entry{e}) {
		t.Errorf("report %q, %d bytes, %+v", list[0].Queues, len(list[0].Stacks), list[0].Calls)
	}
	// A death ends the wait for its report.
	go func() { got <- r.Stacks(bg) }()
	a.must(a.Stacks(protocol.Stacks{ID: a.expect(protocol.EvStacks, wire.ProcID{}).ID}))
	b.must(b.Stacks(protocol.Stacks{ID: b.expect(protocol.EvStacks, wire.ProcID{}).ID}))
	r.Exited(silent.id, "signal: killed", false)
	<-got
}

func TestTool(t *testing.T) {
	r := newRig(t, 2, nil)
	a := r.join(0)
	jobs, err := client.Jobs()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, j := range jobs {
		found = found || j.Addr == r.Addr() && j.Job == a.id.Job
	}
	if !found {
		t.Errorf("%v is not among %v", r.Addr(), jobs)
	}
	tool, err := client.DialTool(bg, r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close()
	for range 2 {
		ps, err := tool.Processes(bg)
		if err != nil || len(ps) != 2 || ps[0].State != protocol.Joined || ps[0].PID != os.Getpid() || ps[1].Rank != 1 || ps[1].State != protocol.Starting {
			t.Errorf("processes %+v, %v", ps, err)
		}
	}
	answered := controltest.Async(t, func() error {
		ev := a.expect(protocol.EvStacks, wire.ProcID{})
		return a.Stacks(protocol.Stacks{ID: ev.ID, Queues: []byte("q"), Stacks: make([]byte, protocol.MaxReport)})
	})
	list, err := tool.Stacks(bg, controltest.Limit)
	a.must(answered())
	if err != nil || len(list) != 2 || string(list[0].Queues) != "q" || len(list[0].Stacks) != protocol.MaxReport || list[1].Answered {
		t.Errorf("stacks: %d, %v", len(list), err)
	}
	ctx, cancel := context.WithCancel(bg)
	stop := controltest.Async(t, func() error { _, err := tool.Stacks(ctx, time.Second); return err })
	a.expect(protocol.EvStacks, wire.ProcID{})
	cancel()
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestToolHandlers holds that each kind that a tool sends has a handler for its type, and that no
// other is taken.
func TestToolHandlers(t *testing.T) {
	asked := map[protocol.Kind]bool{}
	for _, k := range protocol.Kinds(protocol.Gompictl, protocol.Head) {
		asked[k] = true
	}
	for k := range 256 {
		if kind := protocol.Kind(k); (toolHandlers[k] != nil) != asked[kind] {
			t.Errorf("%v: a tool may send it: %v, it has a handler: %v", kind, asked[kind], toolHandlers[k] != nil)
		}
	}
	r := newRig(t, 1, nil)
	r.join(0)
	for _, m := range controltest.Samples(7) {
		f := protocol.Frame{Kind: protocol.KindOf(m), ID: 5, Body: protocol.Encode(m)}
		var last protocol.Frame
		err := r.tool(f, func(frame []byte) bool {
			var err error
			last, _, err = protocol.ParseHead(frame)
			return err == nil
		})
		switch {
		case asked[f.Kind] && (err != nil || last.Kind != protocol.KindReply || last.ID != f.ID):
			t.Errorf("%v: %v, the last frame is %v %d", f.Kind, err, last.Kind, last.ID)
		case !asked[f.Kind] && (err == nil || !strings.Contains(err.Error(), "does not belong here")):
			t.Errorf("%v: %v", f.Kind, err)
		}
	}
}
