// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"gompi/transport"
)

// errRules is the reason of the suite's cuts.
var errRules = errors.New("the suite says that it broke the rules")

// cut ends the connection of n to p.
func (n *node) cut(p *peer) { n.tr.Cut(p.slot, errRules) }

// wasCut reports how the peer of a cut may see it.
func wasCut(err error) bool {
	return errors.Is(err, transport.ErrCut) || errors.Is(err, transport.ErrPeerGone)
}

// testCut: both sides get EvDown with their reasons. The peer first gets what was
// sent to it. Both may go on with others, and connect to each other anew.
func testCut(w *world) {
	for _, count := range []int{0, 1, 20} {
		ns := w.open(3)
		a, b, c := ns[0], ns[1], ns[2]
		ab, ba := w.meet(a, b)
		ac, ca := w.meet(a, c)
		bc, cb := w.meet(b, c)
		for i := range count {
			w.must(a.send(ab, i*10))
			w.must(b.send(ba, i*10))
		}
		a.cut(ab)
		a.cut(ab)
		w.wait("EvDown on both sides", func() bool { return ab.down && ba.down })
		if !errors.Is(ab.err, errRules) {
			w.t.Errorf("EvDown at the side that cut: %v, want the reason", ab.err)
		}
		if !wasCut(ba.err) {
			w.t.Errorf("EvDown at the other side: %v, want ErrCut", ba.err)
		}
		if ba.got != ab.sent {
			w.t.Errorf("%d messages of %d before the cut", ba.got, ab.sent)
		}
		for _, s := range []struct {
			n *node
			p *peer
		}{{a, ab}, {b, ba}} {
			if st, err := s.n.trySend(s.p, kindData, 0, 1, nil); err != nil || st != transport.Broken {
				w.t.Errorf("%v: Send after a cut: status %d, %v; want Broken", s.n, st, err)
			}
		}
		_, err := a.pollQuiet()
		w.must(err)
		w.must(a.send(ac, 7))
		w.must(c.send(ca, 7))
		w.must(b.send(bc, 7))
		w.must(c.send(cb, 7))
		w.wait("the third process", func() bool {
			return ca.got == ac.sent && ac.got == ca.sent && cb.got == bc.sent && bc.got == cb.sent
		})
		a.release(ab)
		b.release(ba)
		ab, ba = w.meet(a, b)
		w.bulk(a, b, ab, ba, corpus()[:100000], 100000)
	}
}

// testCutBeforeConnect: a peer that has connected by itself is also told of a cut.
// If telling it takes a Connect, it is told with that.
func testCutBeforeConnect(w *world) {
	for _, connect := range []bool{true, false} {
		ns := w.open(2)
		a, b := ns[0], ns[1]
		ba := w.connect(b, a)
		w.must(b.send(ba, 10))
		var ab *peer
		w.wait("EvUp", func() bool { ab = a.peers[b.proc]; return ab != nil })
		a.cut(ab)
		switch {
		case !a.caps.NeedsConnect:
		case connect:
			if s, err := a.tr.Connect(w.contact(b.proc, a.proc)); err != nil || s != ab.slot {
				w.t.Fatalf("Connect after a cut by the peer: slot %d, %v; want %d", s, err, ab.slot)
			}
		default:
			a.cut(ab) // it cannot be told
		}
		w.wait("EvDown of the side that cut", func() bool { return ab.down })
		if connect || !a.caps.NeedsConnect {
			w.wait("EvDown of the side that was cut off", func() bool { return ba.down })
		}
	}
}

// testCutAnswersBulk: a cut answers offers and transfers on both sides, at any
// moment of them.
func testCutAnswersBulk(w *world) {
	src := corpus()
	size := min(8<<20, w.o.MaxBulkBytes)
	for turns := range 6 {
		a, b, ab, ba := w.pair()
		open, _, err := a.offer(ab, src[:size]) // never accepted
		w.must(err)
		ab1, _, err := a.offer(ab, src[1:1+size])
		w.must(err)
		ba1, _, err := b.offer(ba, src[2:2+size])
		w.must(err)
		w.wait("the offers", func() bool { return len(ba.offers) == 2 && len(ab.offers) == 1 })
		atB, atA := newTarget(size), newTarget(size)
		ab2, err := b.accept(ba, ba.offers[1].desc, atB.buf())
		w.must(err)
		ba2, err := a.accept(ab, ab.offers[0].desc, atA.buf())
		w.must(err)
		for range turns * 2 {
			_, err := w.pollAll()
			w.must(err)
		}
		a.cut(ab)
		if turns%2 == 1 {
			b.cut(ba)
		}
		w.wait("EvDown", func() bool { return ab.down && ba.down })
		if open.err == nil {
			w.t.Fatal("an offer that nobody accepted ended without error")
		}
		for _, o := range []*op{ab1, ab2, ba1, ba2} {
			if o.err == nil && o.bytes != int64(size) {
				w.t.Fatalf("a transfer cut off ended with %d bytes of %d and no error", o.bytes, size)
			}
		}
		if ab2.err == nil {
			w.must(atB.check(src[1 : 1+size]))
		}
		if ba2.err == nil {
			w.must(atA.check(src[2 : 2+size]))
		}
		a.release(ab)
		b.release(ba)
	}
}

// testCutBusy: in the middle of transfers both ways, each process in a
// goroutine, one cuts the other off, or both do. What was given back then is
// its owner's: it fills its buffers, and nobody else changes them.
func testCutBusy(w *world) {
	size := min(4<<20, w.o.MaxBulkBytes)
	for round := range w.o.rounds(12) {
		a, b, _, _ := w.pair()
		ns := []*node{a, b}
		var cut, ended atomic.Int32
		w.run(ns, func(n *node) error {
			r := rand.New(rand.NewPCG(uint64(round), uint64(n.proc.Serial)))
			p := n.peers[ns[1].proc]
			cuts := round%3 == 0 || round%3 == 1
			if n == b {
				p, cuts = n.peers[ns[0].proc], round%3 != 0
			}
			mine := append(make([]byte, 0, size), corpus()[:size]...)
			theirs := newTarget(size)
			var out, in *op
			n.onOffer = func(p *peer, o offer) (err error) {
				in, err = n.accept(p, o.desc, theirs.buf())
				if cut.Load() > 0 {
					err = nil
				}
				return err
			}
			for left := r.IntN(40); !p.down; left-- {
				if cuts && left <= 0 {
					cut.Add(1)
					n.cut(p)
					cuts = false
				}
				if (out == nil || out.done) && !p.full && cut.Load() == 0 && (in == nil || in.done) {
					desc := make([]byte, transport.MaxDesc)
					o := &op{kind: opOffer, peer: p}
					tok := n.token(o)
					k, err := n.tr.Offer(p.slot, mine, tok, desc)
					if err != nil {
						delete(n.ops, tok) // cut meanwhile
					} else if st, err := n.trySend(p, kindOffer, uint64(tok), size, desc[:k:k]); err != nil {
						return err
					} else if st == transport.Full {
						n.withdraw(p, tok)
					} else {
						out = o
					}
				}
				if _, err := n.turn(); err != nil {
					return err
				}
			}
			fillAll := func(b []byte) {
				for i := range b {
					b[i] = 0x77
				}
			}
			fillAll(mine)
			fillAll(theirs.all)
			ended.Add(1)
			if err := n.until("the other's EvDown", func() bool { return ended.Load() == 2 }); err != nil {
				return err
			}
			want := bytes.Repeat([]byte{0x77}, len(theirs.all))
			if !bytes.Equal(theirs.all, want) || !bytes.Equal(mine, want[:size]) {
				return fmt.Errorf("%v: a buffer was changed after EvDown", n)
			}
			return nil
		})
		w.close(a)
		w.close(b)
		w.nodes = w.nodes[:0]
	}
}
