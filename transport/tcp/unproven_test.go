// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// expectClosed waits until p has closed c, and that nobody came up meanwhile.
func expectClosed(t *testing.T, p *proc, c *caller) {
	t.Helper()
	closed := make(chan struct{})
	go func() {
		io.Copy(io.Discard, c)
		close(closed)
	}()
	done := false
	until(t, "the unproven caller to be dropped", func() bool {
		select {
		case <-closed:
			done = true
		default:
		}
		return done
	}, p)
	if p.up != 0 || p.unproven != 0 || len(p.events) != 0 {
		t.Fatalf("after an unproven caller: %d links up, %d unproven, events %v", p.up, p.unproven, p.events)
	}
}

func goodHello(from, to wire.ProcID) []byte {
	var b [helloBytes]byte
	putHello(&b, &hello{from: from, to: to})
	return b[:]
}

func TestStrangersAreDropped(t *testing.T) {
	self, other := testProc(1), testProc(9)
	change := func(off int, v byte) []byte {
		b := goodHello(other, self)
		b[off] = v
		return b
	}
	for _, c := range []struct {
		name string
		say  []byte
	}{
		{"silence", nil},
		{"half a hello", goodHello(other, self)[:50]},
		{"another magic", change(0, 'G')},
		{"another version", change(offVersion, version+1)},
		{"another word size", change(offWord, 4)},
		{"another byte order", change(offOrder, 3-nativeOrder())},
		{"another role", change(offRole, roleWelcome)},
		{"reserved bytes", change(14, 1)},
		{"another target", goodHello(other, testProc(5))},
		{"a target of another job", goodHello(other, wire.ProcID{Job: testJob + 1, Serial: 1})},
		{"our own name", goodHello(self, self)},
		{"nobody's name", goodHello(wire.ProcID{}, self)},
		{"no proof", goodHello(other, self)},
		{"a wrong proof", append(goodHello(other, self), make([]byte, proofBytes)...)},
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: something long enough to be a hello\r\n\r\n")},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := open(t, 1, Options{UnprovenTimeout: 30 * time.Millisecond})
			s := callUp(t, p, 9)
			s.write(c.say)
			expectClosed(t, p, s)
			// A good caller is welcome all the same.
			good := callUp(t, p, 9)
			good.join(p)
			good.write(good.msg("hello"))
			until(t, "the message", func() bool { return p.count(transport.EvRecv) == 1 }, p)
		})
	}
}

func TestWrongSecret(t *testing.T) {
	p := open(t, 1, Options{})
	c := callUp(t, p, 9)
	bad := testEnv(1).Secret
	bad[31] ^= 1
	done := make(chan error, 1)
	go func() { done <- c.shake(testProc(1), bad) }()
	var err error
	finished := false
	until(t, "the refusal", func() bool {
		select {
		case err = <-done:
			finished = true
		default:
		}
		return finished
	}, p)
	if err == nil || errors.Is(err, errMAC) {
		t.Fatalf("a caller with a wrong secret gets %v, want a closed connection", err)
	}
	if p.up != 0 || len(p.events) != 0 {
		t.Fatalf("%d links up, events %v", p.up, p.events)
	}
}

// TestStrangersAreBounded: callers that say nothing fill the places for
// unproven callers, not the process, and keep nobody out: a real one comes through
// behind any number of them, and before them.
func TestStrangersAreBounded(t *testing.T) {
	p := open(t, 1, Options{UnprovenTimeout: time.Hour})
	early := callUp(t, p, 8)
	early.write(goodHello(testProc(8), testProc(1)))
	for range 3 * maxUnproven {
		callUp(t, p, 9)
	}
	until(t, "the places to be full", func() bool { return p.unproven == maxUnproven }, p)
	good := callUp(t, p, 9)
	good.join(p)
	if p.unproven > maxUnproven {
		t.Fatalf("%d unproven callers, at most %d are allowed", p.unproven, maxUnproven)
	}
	var w [welcomeBytes]byte
	if _, err := io.ReadFull(early, w[:]); err != nil {
		t.Errorf("who has said its hello was dropped: %v", err)
	}
}

// TestStrangersWithoutEnd: places that are taken by those who have said hello
// are free again when their time is up.
func TestStrangersWithoutEnd(t *testing.T) {
	p := open(t, 1, Options{UnprovenTimeout: 200 * time.Millisecond})
	for range maxUnproven + 40 {
		callUp(t, p, 9).write(goodHello(testProc(9), testProc(1)))
	}
	until(t, "the places to be full", func() bool { return p.unproven == maxUnproven }, p)
	good := callUp(t, p, 9)
	good.join(p)
	until(t, "the last to be dropped", func() bool { return p.unproven == 0 }, p)
}

// TestRedials: who is hung up on before a welcome calls again.
func TestRedials(t *testing.T) {
	b := open(t, 2, Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if n < 3 {
				c.Close() // as one that is full
				continue
			}
			to, err := net.Dial("tcp", b.Addrs()[0])
			if err != nil {
				c.Close()
				return
			}
			go func() { io.Copy(to, c); to.Close() }()
			go func() { io.Copy(c, to); c.Close() }()
		}
	}()
	a := open(t, 1, Options{})
	s, err := a.Connect(wire.Contact{Proc: testProc(2), Segment: -1, Bell: -1, Addrs: []string{l.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	a.Send(s, &wire.Header{1}, []byte("x"), 1)
	until(t, "the message", func() bool { return b.count(transport.EvRecv) == 1 }, a, b)
}

// answerer listens and answers every caller with the same bytes.
func answerer(t *testing.T, answer []byte) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write(answer)
			// Until the dialer has closed.
			go func() { io.Copy(io.Discard, c); c.Close() }()
		}
	}()
	return l.Addr().String()
}

// TestDialerRefuses: what a dialer finds wrong is named in EvDown.
func TestDialerRefuses(t *testing.T) {
	welcomeFrom := func(from wire.ProcID) []byte {
		var b [welcomeBytes]byte
		putWelcome(&b, &welcome{from: from})
		return b[:]
	}
	other := welcomeFrom(testProc(2))
	binary.LittleEndian.PutUint16(other[offVersion:], 77)
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closedPort := refused.Addr().String()
	refused.Close()
	for _, c := range []struct {
		name, addr, want string
	}{
		{"version", answerer(t, other), "version 77"},
		{"noise", answerer(t, []byte(strings.Repeat("x", 200))), "not a gompi process"},
		{"secret", answerer(t, welcomeFrom(testProc(2))), "secret"},
		{"someone else", answerer(t, welcomeFrom(testProc(3))), "answers"},
		{"silence", answerer(t, nil), "timed out"},
		{"closed port", closedPort, "refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := open(t, 1, Options{AnswerTimeout: 50 * time.Millisecond})
			s, err := p.Connect(wire.Contact{Proc: testProc(2), Segment: -1, Bell: -1, Addrs: []string{c.addr}})
			if err != nil {
				t.Fatal(err)
			}
			if st := p.Send(s, &wire.Header{}, make([]byte, copyMax+1), 5); st != transport.Queued {
				t.Fatalf("Send before the connection: status %d, want Queued", st)
			}
			until(t, "EvDown", func() bool { return p.count(transport.EvDown) == 1 }, p)
			down := p.first(transport.EvDown)
			if !errors.Is(down.Err, transport.ErrUnreachable) || !strings.Contains(down.Err.Error(), c.want) {
				t.Fatalf("EvDown says %q, want ErrUnreachable and %q", down.Err, c.want)
			}
			if p.events[0].Kind != transport.EvSent || p.events[0].Token != 5 {
				t.Fatalf("first event %+v, want EvSent of 5", p.events[0])
			}
			if st := p.Send(s, &wire.Header{}, nil, 1); st != transport.Broken {
				t.Fatalf("Send after EvDown: status %d, want Broken", st)
			}
			p.Release(s)
		})
	}
}

// TestAddressesInOrder: an address that does not work costs time, not the
// connection.
func TestAddressesInOrder(t *testing.T) {
	a := open(t, 1, Options{AnswerTimeout: 50 * time.Millisecond})
	b := open(t, 2, Options{})
	c := b.contact()
	c.Addrs = append([]string{"not an address", answerer(t, nil), answerer(t, []byte("noise that is longer than any greeting of a process: 0123456789 0123456789 0123456789"))}, c.Addrs...)
	s, err := a.Connect(c)
	if err != nil {
		t.Fatal(err)
	}
	a.Send(s, &wire.Header{1}, []byte("x"), 1)
	until(t, "the message", func() bool { return b.count(transport.EvRecv) == 1 }, a, b)
}
