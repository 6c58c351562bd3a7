// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"crypto/hmac"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// waitLimit is how long a test waits for what must come.
const waitLimit = 20 * time.Second

// proc is one process of a test: a transport and what it has said.
type proc struct {
	*Transport
	tb     testing.TB
	events []transport.Event // payloads are copies
	ev     []transport.Event
}

func open(tb testing.TB, serial uint32, opt Options) *proc {
	tb.Helper()
	tr, err := Open(testEnv(serial), opt)
	if err != nil {
		tb.Fatal(err)
	}
	p := &proc{Transport: tr, tb: tb, ev: make([]transport.Event, 8)}
	tb.Cleanup(func() { p.closeAll() })
	return p
}

func (p *proc) contact() wire.Contact {
	return wire.Contact{Proc: p.env.Self, Segment: -1, Bell: -1, Addrs: p.Addrs()}
}

// poll polls once and keeps what came.
func (p *proc) poll() int {
	n := p.Poll(p.ev)
	for _, e := range p.ev[:n] {
		e.Payload = append([]byte(nil), e.Payload...)
		p.events = append(p.events, e)
	}
	return n
}

// count is how many events of a kind have come.
func (p *proc) count(k transport.EventKind) (n int) {
	for _, e := range p.events {
		if e.Kind == k {
			n++
		}
	}
	return n
}

// first is the first event of a kind.
func (p *proc) first(k transport.EventKind) *transport.Event {
	for i := range p.events {
		if p.events[i].Kind == k {
			return &p.events[i]
		}
	}
	p.tb.Helper()
	p.tb.Fatalf("no event of kind %d in %v", k, p.events)
	return nil
}

// until polls ps until cond holds. A single process sleeps a little when it
// has nothing: the condition may be another goroutine's.
func until(tb testing.TB, what string, cond func() bool, ps ...*proc) {
	tb.Helper()
	for start := time.Now(); !cond(); {
		n := 0
		for _, p := range ps {
			n += p.poll()
		}
		if n == 0 && len(ps) == 1 && !cond() && ps[0].Arm() {
			fds := []unix.PollFd{{Fd: int32(ps[0].FD()), Events: unix.POLLIN}}
			unix.Poll(fds, 2)
			ps[0].Disarm()
		}
		if time.Since(start) > waitLimit {
			for _, p := range ps {
				tb.Logf("process %v: %d events, %d links up", p.env.Self, len(p.events), p.up)
			}
			tb.Fatalf("waited %v for %s", waitLimit, what)
		}
	}
}

// caller is a peer written by hand: it speaks the protocol over a blocking
// connection, or breaks it.
type caller struct {
	net.Conn
	tb   testing.TB
	from wire.ProcID
	seq  uint64
}

// callUp dials a transport without saying anything.
func callUp(tb testing.TB, p *proc, serial uint32) *caller {
	tb.Helper()
	conn, err := net.Dial("tcp", p.Addrs()[0])
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	return &caller{Conn: conn, tb: tb, from: testProc(serial)}
}

var errMAC = errors.New("the welcome's mac is wrong")

// shake does the dialer's part of the handshake with p; p must be polled
// meanwhile.
func (c *caller) shake(p wire.ProcID, secret [32]byte) error {
	var hb [helloBytes]byte
	var wb [welcomeBytes]byte
	h := hello{from: c.from, to: p}
	if err := nonce(&h.nonce); err != nil {
		return err
	}
	putHello(&hb, &h)
	if _, err := c.Write(hb[:]); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, wb[:]); err != nil {
		return err
	}
	w, err := decodeWelcome(&wb)
	if err != nil {
		return err
	}
	want := sign(&secret, acceptLabel, hb[:], wb[:welcomeSigned])
	known := hmac.Equal(want[:], w.mac[:])
	proof := sign(&secret, dialLabel, hb[:], wb[:])
	if _, err := c.Write(proof[:]); err != nil {
		return err
	}
	var v [verdictBytes]byte
	if _, err := io.ReadFull(c, v[:]); err != nil {
		return err
	}
	if !known {
		return errMAC
	}
	return nil
}

// join is shake with p polled by the test.
func (c *caller) join(p *proc) {
	c.tb.Helper()
	done := make(chan error, 1)
	self := p.env.Self
	go func() { done <- c.shake(self, testEnv(1).Secret) }()
	var err error
	finished := false
	until(c.tb, "a caller's handshake", func() bool {
		select {
		case err = <-done:
			finished = true
		default:
		}
		return finished
	}, p)
	if err != nil {
		c.tb.Fatal(err)
	}
}

// frame is a frame with the next number.
func (c *caller) frame(k kind, body []byte) []byte {
	c.seq++
	f := make([]byte, frameHead, frameHead+len(body))
	putHead(f, head{kind: k, body: len(body), seq: c.seq})
	return append(f, body...)
}

// msg is a message frame.
func (c *caller) msg(payload string) []byte {
	return c.frame(kindMsg, append(make([]byte, wire.HeaderBytes), payload...))
}

func (c *caller) write(b []byte) {
	c.tb.Helper()
	if _, err := c.Write(b); err != nil {
		c.tb.Fatal(err)
	}
}
