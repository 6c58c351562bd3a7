// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
	"gompi/transport/tuning"
)

// pusher offers transfers of all lengths to a peer that accepts some of them at once, some
// late, and some into less memory; others it withdraws.
type pusher struct {
	t        *testing.T
	rnd      *rand.Rand
	ta, tb   *Transport
	to, from transport.Slot
	all      map[transport.Token]*pushOffer // by the sender's token
	offers   map[transport.Token]*pushOffer // those of them that are open
	takes    map[transport.Token]*pushOffer // by the receiver's
	late     []*pushOffer
	noise    []byte
	next     transport.Token
	sent     uint64 // messages with descriptors or without
	got      uint64
	ended    int
}

type pushOffer struct {
	src, dst  []byte
	desc      []byte
	tok       transport.Token
	withdrawn bool
}

const pushDesc = 1 << 40 // in the second word of a message: a descriptor comes

func newPusher(t *testing.T, seed uint64) *pusher {
	f := newFabric(nil)
	t.Cleanup(f.close)
	a, b := wire.ProcID{Job: 5, Serial: 1}, wire.ProcID{Job: 5, Serial: 2}
	p := &pusher{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), ta: f.open(t, a), tb: f.open(t, b), all: map[transport.Token]*pushOffer{}, offers: map[transport.Token]*pushOffer{}, takes: map[transport.Token]*pushOffer{}, next: 1}
	t.Cleanup(func() { p.ta.Close(); p.tb.Close() })
	if seed%2 == 0 {
		p.ta.SetThresholds(tuning.Default()) // else it finds out what is better
	}
	p.noise = make([]byte, 3<<19)
	for i := range p.noise {
		p.noise[i] = byte(p.rnd.Uint32())
	}
	var err error
	if p.to, err = p.ta.Connect(f.Contact(b, a)); err != nil {
		t.Fatal(err)
	}
	if p.from, err = p.tb.Connect(f.Contact(a, b)); err != nil {
		t.Fatal(err)
	}
	p.ta.makeStreaming(&p.ta.conn(p.to).out)
	if !p.ta.conn(p.to).out.streaming {
		t.Fatal("the ring is not streaming")
	}
	return p
}

// offer sends a descriptor, if there is room.
func (p *pusher) offer() {
	most := 100 << 10
	if p.rnd.IntN(20) == 0 {
		most = len(p.noise) - 64
	}
	x := &pushOffer{src: p.noise[p.rnd.IntN(64):][:1+p.rnd.IntN(most)], desc: make([]byte, transport.MaxDesc)}
	tok := p.next
	p.next++
	n, err := p.ta.Offer(p.to, x.src, tok, x.desc)
	if err != nil {
		p.t.Fatal(err)
	}
	x.desc = x.desc[:n]
	if p.ta.Send(p.to, &wire.Header{p.sent, pushDesc | uint64(tok)}, x.desc, 0) != transport.Sent {
		p.ta.Withdraw(p.to, tok)
		return
	}
	p.sent++
	p.offers[tok], p.all[tok] = x, x
}

func (p *pusher) accept(x *pushOffer) {
	n := len(x.src)
	if p.rnd.IntN(4) == 0 {
		n = p.rnd.IntN(n + 1)
	}
	x.dst, x.tok = make([]byte, n), p.next
	p.next++
	p.takes[x.tok] = x
	if err := p.tb.Accept(p.from, x.desc, x.dst, x.tok); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pusher) poll(t *Transport) {
	ev := make([]transport.Event, 1+p.rnd.IntN(8))
	for _, e := range ev[:t.Poll(ev)] {
		switch e.Kind {
		case transport.EvRecv:
			if e.Header[0] != p.got {
				p.t.Fatalf("message %d for %d", e.Header[0], p.got)
			}
			p.got++
			if e.Header[1]&pushDesc == 0 {
				continue
			}
			x := p.all[transport.Token(e.Header[1]&^pushDesc)]
			if x == nil || !bytes.Equal(x.desc, e.Payload) {
				p.t.Fatalf("message %d has another descriptor", e.Header[0])
			}
			if p.rnd.IntN(3) == 0 {
				p.late = append(p.late, x)
			} else {
				p.accept(x)
			}
		case transport.EvBulk:
			list := p.offers
			if t == p.tb {
				list = p.takes
			}
			x := list[e.Token]
			if x == nil {
				p.t.Fatalf("the end of transfer %d, which is not open", e.Token)
			}
			delete(list, e.Token)
			switch {
			case x.withdrawn && errors.Is(e.Err, transport.ErrCancelled):
			case e.Err != nil || int(e.Bytes) != len(x.dst) || t == p.tb && !bytes.Equal(x.dst, x.src[:len(x.dst)]):
				p.t.Fatalf("transfer of %d bytes into %d: %d came, %v", len(x.src), len(x.dst), e.Bytes, e.Err)
			}
			p.ended++
		case transport.EvDown:
			p.t.Fatalf("down: %v", e.Err)
		}
	}
}

func (p *pusher) step() {
	switch k := p.rnd.IntN(10); {
	case k == 0 && len(p.late) > 0:
		i := p.rnd.IntN(len(p.late))
		x := p.late[i]
		p.late = append(p.late[:i], p.late[i+1:]...)
		p.accept(x)
	case k == 1:
		for tok, x := range p.offers { // any
			if x.dst == nil && p.rnd.IntN(4) == 0 && p.ta.conn(p.to).offers.findToken(tok).how == offered {
				p.ta.Withdraw(p.to, tok)
				x.withdrawn = true
				delete(p.offers, tok)
			}
			break
		}
	case k < 4 && len(p.offers) < 5:
		p.offer()
	case k < 5:
		if p.ta.Send(p.to, &wire.Header{p.sent, 0}, make([]byte, p.rnd.IntN(3000)), 0) == transport.Sent {
			p.sent++
		}
	case k < 7:
		p.poll(p.ta)
	default:
		p.poll(p.tb)
	}
}

// TestPush: whether a transfer is pushed, accepted at once, late or into less memory, or
// withdrawn: what comes is what was sent, each ends once on either side, and messages
// around it keep their order.
func TestPush(t *testing.T) {
	for seed := range uint64(10) {
		p := newPusher(t, seed)
		for range 10_000 {
			p.step()
		}
		for turns := 0; len(p.offers)+len(p.takes)+len(p.late) > 0 || p.got < p.sent; turns++ {
			if turns > 200_000 {
				t.Fatalf("seed %d: %d offers, %d takes, %d of %d messages for ever", seed, len(p.offers), len(p.takes), p.got, p.sent)
			}
			for len(p.late) > 0 {
				x := p.late[0]
				p.late = p.late[1:]
				p.accept(x)
			}
			p.poll(p.ta)
			p.poll(p.tb)
		}
		c, d := p.ta.conn(p.to), p.tb.conn(p.from)
		if c.offers.n+d.takes.n+len(p.ta.work.bulks)+len(p.tb.work.bulks) > 0 {
			t.Errorf("seed %d: %d offers, %d takes, %d and %d at work are left", seed, c.offers.n, d.takes.n, len(p.ta.work.bulks), len(p.tb.work.bulks))
		}
		if p.ended < 500 {
			t.Errorf("seed %d: %d ends of transfers", seed, p.ended)
		}
		if d.lostPushes == 0 {
			t.Errorf("seed %d: nothing was pushed", seed)
		}
	}
}

// Transfers that are not pushed because the peer was far have no payload in the ring whose
// way depends on that: they look themselves how far it is.
func TestPushLooks(t *testing.T) {
	p := newPusher(t, 1)
	o := &p.ta.conn(p.to).out
	w := tuning.Default()
	w.Near.Push, w.Far.Push = 0, 80<<10
	p.ta.SetThresholds(w)
	for range 1000 {
		if near, far := o.distance.Counts(); near+far > 3 {
			return
		}
		desc := make([]byte, transport.MaxDesc)
		if _, err := p.ta.Offer(p.to, p.noise[:64<<10], p.next, desc); err != nil {
			t.Fatal(err)
		}
		p.ta.Withdraw(p.to, p.next)
		p.next++
	}
	near, far := o.distance.Counts()
	t.Errorf("looked %d times", near+far)
}

// All of a pushed transfer is there when the offer is: who sends it may do other things then.
func TestPushAtOnce(t *testing.T) {
	p := newPusher(t, 0)
	w := tuning.Default()
	w.Near.Push, w.Far.Push = 1<<20, 1<<20
	p.ta.SetThresholds(w)
	for _, n := range []int{20 << 10, 64 << 10, 500_000, 1 << 20} {
		desc := make([]byte, transport.MaxDesc)
		k, err := p.ta.Offer(p.to, p.noise[:n], 1, desc)
		if err != nil {
			t.Fatal(err)
		}
		if st := p.ta.Send(p.to, &wire.Header{}, desc[:k], 0); st != transport.Sent {
			t.Fatalf("%d bytes: %v", n, st)
		}
		dst, ended := make([]byte, n), false
		ev := make([]transport.Event, 8)
		for range 100_000 {
			for _, e := range ev[:p.tb.Poll(ev)] {
				switch e.Kind {
				case transport.EvRecv:
					if err := p.tb.Accept(p.from, e.Payload, dst, 2); err != nil {
						t.Fatal(err)
					}
				case transport.EvBulk:
					ended = true
				}
			}
			if ended {
				break
			}
		}
		if !ended || !bytes.Equal(dst, p.noise[:n]) {
			t.Fatalf("%d bytes have not come while their sender does nothing (ended %v)", n, ended)
		}
		for p.ta.conn(p.to).offers.n > 0 {
			p.ta.Poll(ev)
		}
	}
}
