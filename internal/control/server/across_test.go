// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/controltest"
	"gompi/internal/control/head"
	"gompi/internal/control/link"
	"gompi/internal/control/protocol"
)

// TestAcross: what holds of head and agent in one process holds where there is a
// socket between them.
func TestAcross(t *testing.T) {
	for _, f := range []func(*testing.T){
		TestCommon, TestCommonEnds,
		TestDeathIsAnnouncedAndAcknowledged, TestAcknowledgementByEnding, TestLeaverKeepsItsPid, TestLostConnection, TestEndBehindWrapper,
		TestPidsOfFailedSpawn, TestReapAtOnce, TestWatchOfNobody, TestWatch, TestDeathEndsWaits, TestDeathForgetsItsRequests,
		TestDeathDuringSpawn, TestHostEvents, TestGrowShrink, TestEndsAreToldToHolders,
		TestGarbageBeforeHello, TestGarbageAfterHello, TestDroppedHoldsBackReaping, TestStoppedClient, TestNoDeathIsLost, TestRandomFrames, TestMadRequests,
		TestCut, TestPing, TestWatchOfHeldServer,
		TestWelcome, TestContact, TestContactBeforeStarted, TestSets, TestSpawn, TestSpawnFails, TestAbortAndEnding,
		TestGrowAndShrinkMain, TestChangeOfSeveralSets, TestServerCloseEndsClients, TestClientCloseConcurrently, TestStore, TestFence, TestStacksAndRollCall, TestTool,
	} {
		name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
		t.Run(name[strings.LastIndexByte(name, '.')+1:], f)
	}
}

// The end of an agent is that of its processes: the head says so to all others, and
// they cannot go on.
func TestAcrossAgentLost(t *testing.T) {
	r := newRig(t, 2, nil)
	a := r.join(0)
	asked := controltest.Async(t, func() error { _, err := a.Get(bg, "never", true); return err })
	r.parked(1)
	r.links[1].Break(errors.New("pulled out"))
	r.await("host lost 0 the agent of host 0 is lost: ")
	r.reach("processes", 0) // nobody is left who could ask for them
	if err := asked(); !errors.Is(err, protocol.ErrLost) {
		t.Errorf("a request without a head: %v", err)
	}
	r.await("dropped 1 the connection with gompirun is lost")
	if _, _, err := r.Server.AddJob([][]string{{"x"}}); err == nil {
		t.Error("a process was added on a host that is lost")
	}
	if list := r.Stacks(bg); len(list) != 0 {
		t.Errorf("%d processes", len(list))
	}
	r.reach("asked", 0)
}

// The end of the head is told to the processes.
func TestAcrossHeadLost(t *testing.T) {
	r := newRig(t, 2, nil)
	a := r.join(0)
	r.Server.mu.Lock()
	asked := controltest.Async(t, func() error { return a.Put("k", nil) })
	tool := r.raw(append(protocol.ShortFrame(0, 0, &protocol.Tool{}), protocol.ShortFrame(1, 0, &protocol.Empty{Kind: protocol.KindList})...))
	r.links[0].Break(errors.New("killed"))
	if err := asked(); err == nil {
		t.Error("a request without a head is answered")
	}
	r.await("dropped 1 the connection with gompirun is lost")
	bye(t, tool)
	r.Server.mu.Unlock()
}

// An agent that does not answer holds nobody up, and that is said.
func TestAcrossSilentAgent(t *testing.T) {
	r := newRig(t, 2, nil)
	r.join(0)
	r.await("joined 1")
	r.host.mu.Lock()
	ctx, cancel := context.WithTimeout(bg, 20*time.Millisecond)
	defer cancel()
	list := r.Stacks(ctx)
	r.host.mu.Unlock()
	if len(list) != 2 || list[0].Silent != "the agent of host 0 does not answer" || list[1].Silent != "" {
		t.Errorf("%+v", list)
	}
	r.reach("asked", 0)
	r.passed()
	if list := r.Stacks(ctx); list[0].Silent != "" && ctx.Err() == nil {
		t.Errorf("%+v", list)
	}
}

// What comes from the place of an agent is checked, and may come in pieces.
func TestAcrossHostileAgent(t *testing.T) {
	report := func(r protocol.Report) []byte { return protocol.ShortFrame(0, 0, &r) }
	hello := report(protocol.Report{Kind: protocol.ReportHello, Serial: 1})
	bad := report(protocol.Report{Kind: protocol.ReportHello, Serial: 1})
	bad[protocol.FrameHead] = 99
	long := report(protocol.Report{Kind: protocol.ReportHello, Serial: 1})
	long[protocol.OffLength+3] = 1
	for _, c := range []struct {
		send []byte
		why  string
	}{
		{[]byte("GET / HTTP/1.1\r\n\r\n"), "version"},
		{protocol.ShortFrame(0, 0, &protocol.Hello{}), "does not belong here"},
		{protocol.ShortFrame(0, 0, &protocol.Command{Kind: protocol.CmdCalls}), "does not belong here"},
		{protocol.ShortFrame(0, 2, &protocol.Report{Kind: protocol.ReportHello}), "descriptors"},
		{protocol.ShortFrame(1, 0, &protocol.Report{Kind: protocol.ReportHello}), "request number"},
		{bad, "unknown report"},
		{long, "at most"},
		{hello[:len(hello)-1], "unexpected EOF"},
		{hello[:5], "unexpected EOF"},
		{nil, "has closed"},
		{report(protocol.Report{Kind: protocol.ReportTool, ID: 1, Frame: protocol.Frame{Kind: protocol.KindHello, ID: 1}}), "has closed"}, // refused
		{report(protocol.Report{Kind: protocol.ReportCalls, ID: 77, Serial: 1}), "has closed"},                                            // nobody has asked
		{report(protocol.Report{Kind: protocol.ReportHello, Serial: 2}), "has closed"},                                                    // of another host
		{report(protocol.Report{Kind: protocol.ReportHello, Serial: 9}), "has closed"},
	} {
		lost := make(chan string, 1)
		cfg := Config{JobConfig: JobConfig{Job: 9}, HostLost: func(host uint32, why string) { lost <- why }}
		ours, other := sockets(t), sockets(t)
		links := []*link.Link{link.New(ours[0]), link.New(other[0])}
		s, err := NewHead(cfg, links)
		if err != nil {
			t.Fatal(err)
		}
		for host := range uint32(2) {
			s.step(func() { s.head.Join([][]string{{"x"}}, []head.Place{s.head.PlaceOn(host, 1)}) })
		}
		for _, l := range links {
			l.Run()
		}
		drained := controltest.Async(t, func() error { _, err := io.Copy(io.Discard, ours[1]); return err })
		for _, b := range c.send { // slowly
			ours[1].Write([]byte{b})
		}
		ours[1].(*net.UnixConn).CloseWrite()
		select {
		case why := <-lost:
			if !strings.Contains(why, c.why) {
				t.Errorf("%q: lost because %q; want %q", c.send, why, c.why)
			}
		case <-time.After(controltest.Limit):
			t.Fatalf("%q: nothing is lost", c.send)
		}
		if s.State(wire.ProcID{Job: 9, Serial: 1}) != protocol.Exited || s.State(wire.ProcID{Job: 9, Serial: 2}) != protocol.Starting {
			t.Errorf("%q: %+v", c.send, s.Snapshot())
		}
		for _, l := range links {
			l.Close()
		}
		s.Close()
		drained()
		for _, c := range []net.Conn{ours[1], other[1]} {
			c.Close()
		}
	}
}

// A process that writes without end to a head that is held up fills neither queue,
// and keeps no other from its turn.
func TestAcrossMadProcess(t *testing.T) {
	r := newRig(t, 2, nil)
	mad, other := r.rawJoin(0), r.join(1)
	val := protocol.ShortFrame(1, 0, &protocol.Put{Key: "k", Val: make([]byte, protocol.MaxValue)})
	r.Server.mu.Lock()
	mad.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	wrote := 0
	for {
		n, err := mad.Write(val)
		wrote += n
		if err != nil {
			break
		}
	}
	if most := 4 * protocol.MaxValue; wrote > most {
		t.Errorf("%d bytes are on their way; want at most %d", wrote, most)
	}
	put := controltest.Async(t, func() error { return other.Put("other", []byte(fmt.Sprint(wrote))) })
	r.Server.mu.Unlock()
	if err := put(); err != nil {
		t.Error(err)
	}
}
