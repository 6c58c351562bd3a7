// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// TestKilledInsideFrame kills a process that sends large messages as fast as
// it can. What arrived whole is delivered in order, then EvDown.
func TestKilledInsideFrame(t *testing.T) {
	for _, told := range []bool{false, true} { // by the control plane
		p := open(t, 1, Options{})
		child, contact := startChild(t)
		s, err := p.Connect(contact)
		if err != nil {
			t.Fatal(err)
		}
		const size = 60001
		p.Send(s, &wire.Header{askPour, size}, nil, 1)
		received := uint64(0)
		killed, down := false, false
		for ev := make([]transport.Event, 4); !down; {
			for _, e := range ev[:p.Poll(ev)] {
				switch e.Kind {
				case transport.EvRecv:
					received++
					if len(e.Payload) != size || e.Header[1] != received {
						t.Fatalf("message %d: number %d, %d bytes", received, e.Header[1], len(e.Payload))
					}
				case transport.EvDown:
					down = true
					if !errors.Is(e.Err, transport.ErrPeerGone) || !killed {
						t.Fatalf("EvDown: %v (killed: %v)", e.Err, killed)
					}
				}
			}
			if received >= 100 && !killed {
				killed = true
				child.Process.Kill()
				child.Wait()
				if told {
					p.Fail(s)
				}
			}
		}
		if st := p.Send(s, &wire.Header{}, nil, 1); st != transport.Broken {
			t.Fatalf("Send after EvDown: status %d, want Broken", st)
		}
	}
}

// TestKilledInBulk kills a process in the middle of a transfer: both buffers
// are answered before EvDown.
func TestKilledInBulk(t *testing.T) {
	p := open(t, 1, Options{})
	child, contact := startChild(t)
	s, err := p.Connect(contact)
	if err != nil {
		t.Fatal(err)
	}
	var d [transport.MaxDesc]byte
	buf := make([]byte, 64<<20)
	n, err := p.Offer(s, buf, 5, d[:])
	if err != nil {
		t.Fatal(err)
	}
	p.Send(s, &wire.Header{askTake, uint64(len(buf))}, d[:n], 1)
	until(t, "the transfer to start", func() bool { return p.at(s).sending != nil }, p)
	child.Process.Kill()
	child.Wait()
	until(t, "EvDown", func() bool { return p.count(transport.EvDown) == 1 }, p)
	if e := p.first(transport.EvBulk); e.Token != 5 || !errors.Is(e.Err, transport.ErrPeerGone) {
		t.Fatalf("EvBulk %+v, want token 5 and ErrPeerGone", e)
	}
	if last := p.events[len(p.events)-1]; last.Kind != transport.EvDown {
		t.Fatalf("kind %d after EvDown", last.Kind)
	}
}

// openFDs lists what the process has open.
func openFDs(t *testing.T) []string {
	t.Helper()
	dir, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("cannot count descriptors: %v", err)
	}
	var fds []string
	for _, d := range dir {
		to, err := os.Readlink("/proc/self/fd/" + d.Name())
		if err == nil && (strings.HasPrefix(to, "socket:") || strings.Contains(to, "eventpoll") || strings.Contains(to, "timerfd")) {
			fds = append(fds, to)
		}
	}
	return fds
}

// TestNoLeaks: transports that come and go in every way leave no descriptor
// and no goroutine.
func TestNoLeaks(t *testing.T) {
	before, goroutines := len(openFDs(t)), runtime.NumGoroutine()
	for round := range 100 {
		a, b, c := open(t, 1, Options{}), open(t, 2, Options{}), open(t, 3, Options{})
		ab, err := a.Connect(b.contact())
		if err != nil {
			t.Fatal(err)
		}
		if round%2 == 0 {
			if _, err := b.Connect(a.contact()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Connect(b.contact()); err != nil { // often still dialling at the end
			t.Fatal(err)
		}
		a.Send(ab, &wire.Header{}, []byte("x"), 1)
		until(t, "the message", func() bool { return b.count(transport.EvRecv) == 1 }, a, b)
		if round%3 == 0 {
			a.Fail(ab)
			until(t, "EvDown", func() bool { return a.count(transport.EvDown) == 1 }, a)
		}
		done := make(chan error)
		for _, p := range []*proc{a, b, c} {
			go func() { done <- p.Close() }()
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
	}
	if fds := openFDs(t); len(fds) != before {
		t.Fatalf("%d sockets and the like are open, were %d: %v", len(fds), before, fds)
	}
	// Those that have told their result may still be on their way out.
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, were %d", runtime.NumGoroutine(), goroutines)
		}
	}
}

// TestOpenRefuses: options that make no sense are errors that name them.
func TestOpenRefuses(t *testing.T) {
	for _, o := range []Options{
		{Listen: []string{"localhost:0"}},
		{Listen: []string{"0.0.0.0:0"}},
		{Listen: []string{"127.0.0.1:0", "[::]:0"}},
		{Listen: []string{"192.0.2.1:0"}},
		{EagerMax: eagerLimit + 1},
		{EagerMax: -1},
		{ChunkBytes: 1},
		{DialTimeout: -1},
	} {
		if p, err := Open(testEnv(1), o); err == nil {
			p.Close()
			t.Errorf("Open accepts %+v", o)
		}
	}
	env := testEnv(1)
	env.Setting = func(name string) string { return map[string]string{"GOMPI_TCP_EAGER": "much"}[name] }
	if _, err := Open(env, Options{}); err == nil || !strings.Contains(err.Error(), "GOMPI_TCP_EAGER") {
		t.Errorf("Open with GOMPI_TCP_EAGER=much: %v", err)
	}
	env.Setting = func(name string) string { return map[string]string{"GOMPI_TCP_EAGER": "1000"}[name] }
	p, err := Open(env, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if c := p.Caps(); c.EagerMax != 1000 || c.EagerBest != 1000 {
		t.Errorf("GOMPI_TCP_EAGER=1000 gives %+v", c)
	}
}

// TestFailOfTheLoud: Fail ends even a peer that is not dead and never stops
// sending.
func TestFailOfTheLoud(t *testing.T) {
	p := open(t, 1, Options{})
	s := joined(t, p)
	go func() {
		for {
			if _, err := s.Write(s.msg(string(make([]byte, 10000)))); err != nil {
				return
			}
		}
	}()
	p.Fail(p.first(transport.EvUp).Slot)
	until(t, "EvDown", func() bool {
		p.events = p.events[len(p.events)-min(1, len(p.events)):]
		return p.count(transport.EvDown) == 1
	}, p)
}

// TestFailOfTheSilent: a process that is reported dead and whose connection
// does not end (its host is gone) is down soon, with what it had sent.
func TestFailOfTheSilent(t *testing.T) {
	p := open(t, 1, Options{})
	s := joined(t, p)
	s.write(append(s.msg("whole"), s.msg("cut off")[:30]...))
	p.Fail(p.first(transport.EvUp).Slot)
	until(t, "EvDown", func() bool { return p.count(transport.EvDown) == 1 }, p)
	if m := p.first(transport.EvRecv); string(m.Payload) != "whole" || p.count(transport.EvRecv) != 1 {
		t.Fatalf("events %+v: want one message", p.events)
	}
	if e := p.events[len(p.events)-1]; e.Kind != transport.EvDown || !errors.Is(e.Err, transport.ErrPeerGone) {
		t.Fatalf("last event %+v, want EvDown with ErrPeerGone", e)
	}
}

// joined is a caller that has joined.
func joined(t *testing.T, p *proc) *caller {
	s := callUp(t, p, 2)
	s.join(p)
	return s
}

// TestCloseIsBounded: a peer that neither reads nor ends does not hold Close
// up for longer than the linger time.
func TestCloseIsBounded(t *testing.T) {
	p := open(t, 1, Options{LingerTimeout: 100 * time.Millisecond})
	joined(t, p)
	slot := p.first(transport.EvUp).Slot
	for p.Send(slot, &wire.Header{}, make([]byte, eagerLimit), 0) != transport.Full {
		p.poll()
	}
	start := time.Now()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d < 100*time.Millisecond || d > waitLimit {
		t.Fatalf("Close took %v, want 100 ms and a little", d)
	}
}

// TestMessagesPassBulk: a message sent while a large transfer runs arrives
// before its end, and two transfers share the connection.
func TestMessagesPassBulk(t *testing.T) {
	a, b := open(t, 1, Options{}), open(t, 2, Options{})
	ab, err := a.Connect(b.contact())
	if err != nil {
		t.Fatal(err)
	}
	a.Send(ab, &wire.Header{}, nil, 1)
	until(t, "the connection", func() bool { return b.count(transport.EvRecv) == 1 }, a, b)
	ba := b.first(transport.EvUp).Slot
	const size = 64 << 20
	for i := range transport.Token(2) {
		var d [transport.MaxDesc]byte
		n, err := a.Offer(ab, make([]byte, size), 10+i, d[:])
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Accept(ba, d[:n], make([]byte, size), 20+i); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the transfers to start", func() bool {
		return len(b.at(ba).recvs) == 2 && b.at(ba).recvs[1].got > 0 && b.at(ba).recvs[2].got > 0
	}, a, b)
	a.Send(ab, &wire.Header{7}, []byte("passing"), 1)
	until(t, "the message", func() bool { return b.count(transport.EvRecv) == 2 }, a, b)
	if n := b.count(transport.EvBulk); n != 0 {
		t.Fatalf("%d transfers ended before a message sent at their start", n)
	}
	until(t, "the transfers", func() bool { return a.count(transport.EvBulk)+b.count(transport.EvBulk) == 4 }, a, b)
}
