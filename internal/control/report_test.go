// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"gompi/internal/rollcall"
	"gompi/internal/segment"
	"gompi/internal/wire"
)

func TestStacksAndRollCall(t *testing.T) {
	r := newRig(t, 4, nil)
	r.Started(r.procs[0].Proc, os.Getpid())
	c, w, err := Dial(r.Addr(), r.procs[0].Token)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mem, err := segment.Map(w.Segment, segment.RollCall, segment.RollCallBytes, true)
	if err != nil {
		t.Fatal(err)
	}
	defer segment.Unmap(mem)
	closeFDs([]int{w.Segment, w.Bell})
	book, err := rollcall.Open(mem)
	if err != nil {
		t.Fatal(err)
	}
	e := rollcall.Entry{Op: "Recv", Peer: 1, PeerProc: r.procs[1].Proc, CommSize: 4, Since: time.Unix(5, 6), Caller: "x.go:1 f", Comm: r.world.Context(w.Self.Job)}
	book.Enter(&e)
	a := &child{Client: c, t: t, id: w.Self}
	b, silent := r.join(1), r.join(2)

	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	got := make(chan []StackReport, 1)
	go func() { got <- r.Stacks(ctx) }()
	b.must(b.Stacks(b.expect(EvStacks, wire.ProcID{}).ID, nil, nil))
	a.must(a.Stacks(a.expect(EvStacks, wire.ProcID{}).ID, []byte("queues"), make([]byte, MaxReport+9)))
	silent.expect(EvStacks, wire.ProcID{})
	a.settle()
	b.settle()
	cancel()
	list := <-got
	if len(list) != 4 || !list[0].Answered || !list[1].Answered || list[2].Answered || list[3].Answered {
		t.Fatalf("reports %+v", list)
	}
	if string(list[0].Queues) != "queues" || len(list[0].Stacks) != MaxReport || !reflect.DeepEqual(list[0].Calls, []rollcall.Entry{e}) {
		t.Errorf("report %q, %d bytes, %+v", list[0].Queues, len(list[0].Stacks), list[0].Calls)
	}
	// A death ends the wait for its report.
	go func() { got <- r.Stacks(bg) }()
	a.must(a.Stacks(a.expect(EvStacks, wire.ProcID{}).ID, nil, nil))
	b.must(b.Stacks(b.expect(EvStacks, wire.ProcID{}).ID, nil, nil))
	r.Exited(silent.id, "signal: killed", false)
	<-got
}

func TestTool(t *testing.T) {
	r := newRig(t, 2, nil)
	a := r.join(0)
	jobs, err := Jobs()
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
	tool, err := DialTool(r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close()
	for range 2 {
		ps, err := tool.Processes(bg)
		if err != nil || len(ps) != 2 || ps[0].State != Joined || ps[0].PID != os.Getpid() || ps[1].Rank != 1 || ps[1].State != Starting {
			t.Errorf("processes %+v, %v", ps, err)
		}
	}
	answered := async(t, func() error {
		ev := a.expect(EvStacks, wire.ProcID{})
		return a.Stacks(ev.ID, []byte("q"), make([]byte, MaxReport))
	})
	list, err := tool.Stacks(bg, patience)
	a.must(answered())
	if err != nil || len(list) != 2 || string(list[0].Queues) != "q" || len(list[0].Stacks) != MaxReport || list[1].Answered {
		t.Errorf("stacks: %d, %v", len(list), err)
	}
	ctx, cancel := context.WithCancel(bg)
	stop := async(t, func() error { _, err := tool.Stacks(ctx, time.Second); return err })
	a.expect(EvStacks, wire.ProcID{})
	cancel()
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestParseJobs(t *testing.T) {
	const table = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 15437 @gompi-00000000000000ab
0000000000000000: 00000003 00000000 00000000 0001 03 15438 @gompi-00000000000000cd
0000000000000000: 00000002 00000000 00010000 0001 01 15439 @gompi-ab
0000000000000000: 00000002 00000000 00010000 0001 01 15440 /run/gompi-00000000000000ab
0000000000000000: 00000002 00000000 zz 0001 01 15441 @gompi-00000000000000ab
short
`
	jobs, err := parseJobs(strings.NewReader(table))
	if err != nil || len(jobs) != 1 || jobs[0].Job != 0xab {
		t.Errorf("%+v, %v", jobs, err)
	}
}
