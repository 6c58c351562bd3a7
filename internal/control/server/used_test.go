// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"testing"
	"time"

	"gompi/internal/control/callreg"
	"gompi/internal/control/client"
	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

// A tool sees what each process uses and waits for, and no process hears of it.
func TestToolSeesWhatIsUsed(t *testing.T) {
	r := newRig(t, 2, func(c *Config) { c.HostNames = []string{"here"} })
	a := r.join(0)
	tool, err := client.DialTool(bg, r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close()
	c, err := a.Contact(a.id) // its own segment
	a.must(err)
	mem, err := segment.Map(c.Segment, segment.CallRegistry, segment.CallRegistryBytes, true)
	if err != nil {
		t.Fatal(err)
	}
	defer segment.Unmap(mem)
	protocol.CloseFiles(c.Segment, c.Bell)
	book, err := callreg.Open(mem)
	if err != nil {
		t.Fatal(err)
	}
	late := callreg.Entry{Op: "Barrier", Peer: callreg.NoPeer, Since: time.Unix(9, 0)}
	first := callreg.Entry{Op: "Recv", Peer: 1, PeerProc: r.procs[1].Proc, CommSize: 2, Since: time.Unix(5, 6), Caller: "x.go:1 f"}
	book.Enter(&late)
	book.Enter(&first)
	tally := callreg.Counters{Sent: 1, SentBytes: 2, Received: 3, ReceivedBytes: 4, Collectives: 5}
	*book.Counters() = tally

	used := func() []protocol.StackReport {
		t.Helper()
		list, err := tool.Used(bg)
		if err != nil || len(list) != 2 {
			t.Fatalf("%d processes, %v", len(list), err)
		}
		return list
	}
	list := used()
	if p := list[0]; p.State != protocol.Joined || p.Host != "here" || p.Answered || len(p.Calls) != 1 || p.Calls[0] != first || p.Used.Counters != tally {
		t.Errorf("rank 0: %+v", p)
	}
	if u := list[0].Used; u.At <= 0 || u.CPU <= 0 || u.Memory < 1<<20 {
		t.Errorf("rank 0 has used %+v", u)
	}
	if !slices.Contains(list[0].Sets, r.world.Number) || !slices.Equal(list[0].Sets, list[1].Sets) {
		t.Errorf("the world is set %d, they are in %v and %v", r.world.Number, list[0].Sets, list[1].Sets)
	}
	if p := list[1]; p.State != protocol.Starting || p.Used != (protocol.Used{}) || p.Calls != nil {
		t.Errorf("rank 1, which does not run: %+v", p)
	}
	book.Counters().Sent += 10
	if again := used()[0].Used; again.Sent != tally.Sent+10 || again.At <= list[0].Used.At || again.CPU < list[0].Used.CPU {
		t.Errorf("%+v, and before that %+v", again, list[0].Used)
	}
	a.settle()
}

func TestAcrossToolSeesWhatIsUsed(t *testing.T) { TestToolSeesWhatIsUsed(t) }
