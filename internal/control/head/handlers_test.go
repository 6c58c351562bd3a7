// SPDX-License-Identifier: Apache-2.0

package head

import (
	"slices"
	"strings"
	"testing"

	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
)

// joined is a head with n processes that have joined.
func joined(t testing.TB, n int) *Head {
	h := New(Config{Job: 7, FaultTolerant: true}, 1)
	world, err := h.Join(make([][]string, n), []Place{{Count: n, Reservation: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range world.Members.All() {
		h.Take(0, &protocol.Report{Kind: protocol.ReportHello, Serial: id.Serial})
	}
	h.Flush(func(*Effect) {})
	return h
}

// say lets process 1 send a frame. It returns why the connection is shut, if it is, and whether
// the frame was answered.
func say(h *Head, f protocol.Frame) (shut string, answered bool) {
	h.Take(0, &protocol.Report{Kind: protocol.ReportFrame, Serial: 1, Frame: f})
	h.Flush(func(e *Effect) {
		switch e.Order.Kind {
		case protocol.CmdShut:
			shut = e.Order.Text
		case protocol.CmdSend:
			g, _, err := protocol.ParseHead(e.Order.Frame)
			answered = answered || err == nil && g.Kind == protocol.KindReply && g.ID == f.ID
		}
	})
	return shut, answered
}

// TestHandlers holds that each kind that a process sends to the head has a handler for its type,
// and that all other kinds end the connection.
func TestHandlers(t *testing.T) {
	handled := map[protocol.Kind]bool{}
	for _, k := range protocol.Kinds(protocol.Process, protocol.Head) {
		handled[k] = true
	}
	for k := range 256 {
		if kind := protocol.Kind(k); (handlers[k] != nil) != handled[kind] {
			t.Errorf("%v: the head gets it: %v, it has a handler: %v", kind, handled[kind], handlers[k] != nil)
		}
	}
	for _, m := range controltest.Samples(7) {
		h := joined(t, 3)
		f := protocol.Frame{Kind: protocol.KindOf(m), Body: protocol.Encode(m)}
		if f.Kind.Asks() {
			f.ID = 5
		}
		shut, answered := say(h, f)
		switch waits := h.procs[1] != nil && h.procs[1].reqs[5] != nil; {
		case !handled[f.Kind]:
			if !strings.Contains(shut, f.Kind.String()+" frame does not belong here") {
				t.Errorf("%v: the connection is shut because %q", f.Kind, shut)
			}
		case shut != "":
			t.Errorf("%v: the connection is shut because %q", f.Kind, shut)
		case f.Kind.Asks() && !answered && !waits && f.Kind != protocol.KindSubscribe: // of which the agent answers what the head does not refuse
			t.Errorf("%v: neither answered nor waiting", f.Kind)
		}
	}
}

// TestRequestInUse holds that a process has each request number once, and that one that takes no
// part in the job any more may only abort and finalize.
func TestRequestInUse(t *testing.T) {
	h := joined(t, 2)
	get := protocol.Frame{Kind: protocol.KindGet, ID: 5, Body: protocol.Encode(&protocol.Get{Key: "k", Wait: true})}
	if shut, answered := say(h, get); shut != "" || answered {
		t.Errorf("a request that waits: shut because %q, answered: %v", shut, answered)
	}
	if shut, _ := say(h, get); !strings.Contains(shut, "request number 5 is in use") {
		t.Errorf("the same once more: %q", shut)
	}
	h = joined(t, 2)
	end := protocol.Frame{Kind: protocol.KindFinalize, ID: 1}
	if shut, answered := say(h, end); shut != "" || !answered {
		t.Errorf("finalize: shut because %q, answered: %v", shut, answered)
	}
	get.Body = []byte("not decoded")
	late := []protocol.Frame{get, end, {Kind: protocol.KindAbort, ID: 2, Body: protocol.Encode(&protocol.Abort{})}}
	for _, f := range late {
		if shut, answered := say(h, f); shut != "" || !answered {
			t.Errorf("%v after finalize: shut because %q, answered: %v", f.Kind, shut, answered)
		}
	}
	if n := len(h.procs[1].reqs); n != 0 || !slices.Equal(late[0].Body, get.Body) {
		t.Errorf("%d requests wait", n)
	}
}

// BenchmarkFrame is one request of a process, from its frame to the answer, and a fence of all.
func BenchmarkFrame(b *testing.B) {
	const n = 8000
	h := joined(b, n)
	world := h.sets[1].members
	for _, c := range []struct {
		name string
		ask  protocol.Message
		all  bool // every process asks
	}{
		{name: "lookup", ask: &protocol.Text{Kind: protocol.KindLookup, Text: protocol.WorldURI}},
		{name: "put", ask: &protocol.Put{Key: "key", Val: make([]byte, 64)}},
		{name: "get", ask: &protocol.Get{Key: "key"}},
		{name: "describe", ask: &protocol.Set{Kind: protocol.KindDescribe, Number: 1}},
		{name: "withdraw", ask: &protocol.Op{Kind: protocol.KindWithdraw, Op: 99}},
		{name: "ping", ask: &protocol.Ping{Kind: protocol.KindPing, Proc: world.At(0), ID: 1}},
		{name: "fence of 8000", ask: &protocol.Members{Kind: protocol.KindFence, Members: world}, all: true},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := &protocol.Report{Kind: protocol.ReportFrame, Serial: 1, Frame: protocol.Frame{Kind: protocol.KindOf(c.ask), Body: protocol.Encode(c.ask)}}
			if r.Frame.Kind.Asks() {
				r.Frame.ID = 1
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, p := range world.All() {
					r.Serial = p.Serial
					h.Take(0, r)
					h.Flush(func(*Effect) {})
					if !c.all {
						break
					}
				}
			}
		})
	}
}
