// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"math/rand/v2"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// checkOrder fails unless p has received the messages 0..n-1 from slot s.
func checkOrder(t *testing.T, p *proc, s transport.Slot, n int) {
	t.Helper()
	next := uint64(0)
	for _, e := range p.events {
		if e.Kind == transport.EvRecv && e.Slot == s {
			if e.Header[0] != next {
				t.Fatalf("process %v: message %d arrives as number %d", p.env.Self, e.Header[0], next)
			}
			next++
		}
	}
	if next != uint64(n) {
		t.Fatalf("process %v: %d messages, want %d", p.env.Self, next, n)
	}
}

// TestCrossedDials: both dial, the turns are random; one link is left, nothing
// is lost or overtaken, and nobody hears EvUp.
func TestCrossedDials(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		a, b := open(t, 1, Options{}), open(t, 2, Options{})
		ps := []*proc{a, b}
		var slots [2]transport.Slot
		sent := [2]int{}
		connect := func(i int) {
			var err error
			if slots[i], err = ps[i].Connect(ps[1-i].contact()); err != nil {
				t.Fatal(err)
			}
		}
		send := func(i int) {
			for range r.IntN(5) {
				st := ps[i].Send(slots[i], &wire.Header{uint64(sent[i])}, make([]byte, r.IntN(20000)), 1)
				if st > transport.Queued {
					t.Fatalf("Send: status %d", st)
				}
				sent[i]++
			}
		}
		first := r.IntN(2)
		connect(first)
		send(first)
		// Sometimes the second has heard of the first before it dials.
		for range r.IntN(3) * r.IntN(4) {
			ps[r.IntN(2)].poll()
		}
		connect(1 - first)
		for range 30 {
			i := r.IntN(2)
			if r.IntN(8) == 0 {
				send(i)
			}
			ps[i].poll()
		}
		until(t, "all messages", func() bool {
			return a.count(transport.EvRecv) == sent[1] && b.count(transport.EvRecv) == sent[0]
		}, ps...)
		checkOrder(t, a, slots[0], sent[1])
		checkOrder(t, b, slots[1], sent[0])
		for range 50 {
			a.poll()
			b.poll()
		}
		for i, p := range ps {
			links := 0
			for _, l := range p.links {
				if l != nil {
					links++
				}
			}
			up := p.count(transport.EvUp)
			if links > 1 || i == first && up > 0 || up > 1 {
				t.Fatalf("round %d, process %v: %d links, %d EvUp (dialled first: %v)", round, p.env.Self, links, up, i == first)
			}
		}
		a.closeAll()
		b.closeAll()
	}
}

// TestParkedDialIsUsed: of crossed dials the one that should win does not get
// through, so the other is used.
func TestParkedDialIsUsed(t *testing.T) {
	a, b := open(t, 1, Options{AnswerTimeout: 100 * time.Millisecond}), open(t, 2, Options{})
	c := b.contact()
	c.Addrs = []string{answerer(t, nil)}
	sa, err := a.Connect(c)
	if err != nil {
		t.Fatal(err)
	}
	sb, err := b.Connect(a.contact())
	if err != nil {
		t.Fatal(err)
	}
	a.Send(sa, &wire.Header{0}, nil, 1)
	b.Send(sb, &wire.Header{0}, nil, 1)
	until(t, "both messages", func() bool {
		return a.count(transport.EvRecv) == 1 && b.count(transport.EvRecv) == 1
	}, a, b)
	if a.count(transport.EvDown)+b.count(transport.EvDown) != 0 {
		t.Fatalf("events %v and %v", a.events, b.events)
	}
}

// TestCallAgain: a process releases another and calls it again. The other
// gets all of the first connection, EvDown, and then the second.
func TestCallAgain(t *testing.T) {
	a, b := open(t, 1, Options{}), open(t, 2, Options{})
	for round := range 50 {
		b.events = nil
		for half := range 2 {
			s, err := a.Connect(b.contact())
			if err != nil {
				t.Fatal(err)
			}
			for i := range 10 {
				a.Send(s, &wire.Header{uint64(i)}, make([]byte, round*10), 1)
			}
			if half == 0 {
				// Released at once, while b may not even know of it.
				for range round % 10 {
					a.poll()
				}
				until(t, "Flushed", a.Flushed, a, b)
			} else {
				released := false
				until(t, "the second half", func() bool {
					if !released && b.count(transport.EvDown) == 1 {
						released = true
						slot := b.first(transport.EvDown).Slot
						checkOrder(t, b, slot, 10)
						b.events = nil
						b.Release(slot)
					}
					return released && b.count(transport.EvUp) == 1 && b.count(transport.EvRecv) == 10
				}, a, b)
			}
			a.Release(s)
		}
		until(t, "the second EvDown", func() bool { return b.count(transport.EvDown) == 1 }, a, b)
		b.Release(b.first(transport.EvDown).Slot)
		until(t, "the end", func() bool { return a.lingering == 0 }, a, b)
	}
}

// TestManyPeers: 64 processes call one, which answers all.
func TestManyPeers(t *testing.T) {
	const peers, messages = 64, 20
	hub := open(t, 1, Options{})
	all := []*proc{hub}
	for i := range uint32(peers) {
		p := open(t, 2+i, Options{})
		all = append(all, p)
		s, err := p.Connect(hub.contact())
		if err != nil {
			t.Fatal(err)
		}
		for k := range uint64(messages) {
			p.Send(s, &wire.Header{k}, []byte("hi"), 1)
		}
	}
	answered := 0
	until(t, "all answers", func() bool {
		for _, e := range hub.events[answered:] {
			if e.Kind == transport.EvRecv {
				hub.Send(e.Slot, &e.Header, e.Payload, 0)
			}
			answered++
		}
		for _, p := range all[1:] {
			if p.count(transport.EvRecv) < messages {
				return false
			}
		}
		return true
	}, all...)
	for _, p := range all[1:] {
		checkOrder(t, p, p.first(transport.EvRecv).Slot, messages)
	}
}
