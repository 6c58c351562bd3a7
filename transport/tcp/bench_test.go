// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"fmt"
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// pinger is this process's side of a ping-pong with a child.
type pinger struct {
	tb   testing.TB
	t    *Transport
	slot transport.Slot
	ev   []transport.Event
}

func newPinger(tb testing.TB, opt Options) *pinger {
	_, contact := startChild(tb)
	t, err := Open(testEnv(1), opt)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { t.Close() })
	p := &pinger{tb: tb, t: t, ev: make([]transport.Event, 16)}
	if p.slot, err = t.Connect(contact); err != nil {
		tb.Fatal(err)
	}
	return p
}

// message sends b and waits for the answer.
func (p *pinger) message(h *wire.Header, b []byte) {
	if st := p.t.Send(p.slot, h, b, 1); st > transport.Queued {
		p.tb.Fatalf("Send: status %d", st)
	}
	for {
		for _, e := range p.ev[:p.t.Poll(p.ev)] {
			switch e.Kind {
			case transport.EvRecv:
				return
			case transport.EvDown:
				p.tb.Fatal(e.Err)
			}
		}
	}
}

// bulk offers b and takes back as much.
func (p *pinger) bulk(b []byte) {
	var desc [transport.MaxDesc]byte
	n, err := p.t.Offer(p.slot, b, 1, desc[:])
	if err != nil {
		p.tb.Fatal(err)
	}
	p.t.Send(p.slot, &wire.Header{askTake, uint64(len(b))}, desc[:n], 0)
	for open := 2; open > 0; {
		for _, e := range p.ev[:p.t.Poll(p.ev)] {
			switch e.Kind {
			case transport.EvRecv:
				if err := p.t.Accept(p.slot, e.Payload, b, 2); err != nil {
					p.tb.Fatal(err)
				}
			case transport.EvBulk:
				if e.Err != nil || e.Bytes != int64(len(b)) {
					p.tb.Fatalf("bulk of %d: %d, %v", len(b), e.Bytes, e.Err)
				}
				open--
			case transport.EvDown:
				p.tb.Fatal(e.Err)
			}
		}
	}
}

// BenchmarkPingPong is a ping-pong of two processes; us/oneway is half of it.
func BenchmarkPingPong(b *testing.B) {
	for _, size := range []int{8, 1 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("send/%d", size), func(b *testing.B) {
			p := newPinger(b, Options{})
			h, buf := &wire.Header{askEcho}, make([]byte, size)
			p.message(h, buf)
			for b.Loop() {
				p.message(h, buf)
			}
			report(b, size)
		})
	}
	for _, size := range []int{8 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("bulk/%d", size), func(b *testing.B) {
			p := newPinger(b, Options{})
			buf := make([]byte, size)
			p.bulk(buf)
			for b.Loop() {
				p.bulk(buf)
			}
			report(b, size)
		})
	}
}

func report(b *testing.B, size int) {
	us := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / 2e3
	b.ReportMetric(us, "us/oneway")
	b.ReportMetric(float64(size)/us, "MB/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkPollIdle is what a turn costs while nothing comes.
func BenchmarkPollIdle(b *testing.B) {
	p := newPinger(b, Options{})
	for range 3 {
		p.message(&wire.Header{askEcho}, nil)
	}
	for b.Loop() {
		p.t.Poll(p.ev)
	}
}
