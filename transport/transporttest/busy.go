// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"gompi/transport"
)

// testFailBusy: one of three processes dies at a random moment of random traffic,
// each in a goroutine. The two others are told. All their operations with the dead
// process end, and they go on with each other.
func testFailBusy(w *world) {
	for round := range w.o.rounds(30) {
		ns := w.open(3)
		victim := ns[2]
		for i, n := range ns {
			for _, m := range ns[:i] {
				w.meet(n, m)
			}
		}
		var dead atomic.Bool
		w.run(ns, func(n *node) error {
			b := &busy{actor{n: n, all: ns, r: rand.New(rand.NewPCG(uint64(round), uint64(n.proc.Serial)))}, victim}
			if n == victim {
				if err := b.play(b.r.IntN(60), &dead); err != nil {
					return err
				}
				w.kill(n)
				dead.Store(true)
				return errDied
			}
			if err := b.play(1<<20, &dead); err != nil {
				return err
			}
			return b.survive()
		})
		a, b := ns[0], ns[1]
		a.onOffer, b.onOffer = nil, nil
		ab, ba := w.meet(a, b)
		w.bulk(a, b, ab, ba, window(300000%w.o.MaxBulkBytes), 300000%w.o.MaxBulkBytes)
		w.close(a)
		w.close(b)
		w.nodes = w.nodes[:0]
	}
}

// busy is an actor that expects the victim to die.
type busy struct {
	actor
	victim *node
}

// play does random things until steps are done or the victim is dead. It
// waits for nobody.
func (b *busy) play(steps int, dead *atomic.Bool) error {
	n := b.n
	for i := 0; i < steps && !dead.Load(); i++ {
		to := b.all[b.r.IntN(len(b.all))]
		if to != n {
			p := n.peers[to.proc]
			switch k := b.r.IntN(10); {
			case p.down || p.full:
			case k < 6:
				if _, err := n.trySend(p, kindData, 0, b.r.IntN(1+n.caps.EagerMax>>b.r.IntN(10)), nil); err != nil {
					return err
				}
			case k < 8 && len(n.ops) < 50:
				if err := b.tryOffer(p); err != nil {
					return err
				}
			}
		}
		if err := b.takeAny(); err != nil {
			return err
		}
		if _, err := n.poll(); err != nil {
			return err
		}
	}
	return nil
}

// tryOffer offers a window, and takes it back if the peer cannot be told.
func (b *busy) tryOffer(p *peer) error {
	n := b.n
	size := 1 + b.r.IntN(min(1<<20, n.w.o.MaxBulkBytes))>>b.r.IntN(8)
	o := &op{kind: opOffer, peer: p}
	tok := n.token(o)
	desc := make([]byte, transport.MaxDesc)
	k, err := n.tr.Offer(p.slot, window(size), tok, desc)
	if err != nil {
		// It may have died, with its EvDown under way.
		delete(n.ops, tok)
		if p.proc != b.victim.proc {
			return fmt.Errorf("%v: Offer to %v: %w", n, p.proc, err)
		}
		return nil
	}
	st, err := n.trySend(p, kindOffer, uint64(tok), size, desc[:k:k])
	if err != nil {
		return err
	}
	if st == transport.Full {
		n.withdraw(p, tok)
	}
	return nil
}

// takeAny accepts the offers that have come.
func (b *busy) takeAny() error {
	for _, p := range b.n.peers {
		for _, of := range p.offers {
			if err := b.take(p, of); err != nil {
				return err
			}
		}
		p.offers = p.offers[:0]
	}
	return nil
}

// take accepts an offer; of the dead it may be refused.
func (b *busy) take(p *peer, of offer) error {
	dst := newTarget(of.bytes)
	o, err := b.n.accept(p, of.desc, dst.buf())
	if err != nil {
		if p.proc == b.victim.proc {
			return nil
		}
		return err
	}
	b.recvs = append(b.recvs, taken{o, dst, window(of.bytes)})
	return nil
}

// survive tells the transport of the death, waits for EvDown, and for the end
// of everything else.
func (b *busy) survive() error {
	n := b.n
	v := n.peers[b.victim.proc]
	// From now on in every Poll, also when this function has returned: the
	// other survivor may wait for it.
	n.onOffer = b.take
	if err := b.takeAny(); err != nil {
		return err
	}
	if !v.down {
		n.tr.Fail(v.slot)
	}
	if err := n.until(n.String()+" waits for EvDown", func() bool { return v.down }); err != nil {
		return err
	}
	if v.got > b.victim.peers[n.proc].sent {
		return fmt.Errorf("%v: %d messages of the dead, which sent %d", n, v.got, b.victim.peers[n.proc].sent)
	}
	n.release(v)
	if err := n.until(n.String()+" ends its transfers", func() bool { return len(n.ops) == 0 }); err != nil {
		return err
	}
	for _, t := range b.recvs {
		if t.o.err != nil && t.o.peer == v {
			continue
		}
		if err := ended(len(t.want), t.o); err != nil {
			return err
		}
		if err := t.dst.check(t.want); err != nil {
			return err
		}
	}
	return nil
}
