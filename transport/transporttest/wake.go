// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"gompi/transport"
)

// dawdle lets other goroutines run for a random number of turns, so that a
// message meets a sleeper in every state.
func dawdle(r *rand.Rand) {
	for range r.IntN(40) >> r.IntN(8) {
		runtime.Gosched()
	}
}

// sleptWell fails the test if no node ever slept: then Arm always returned false, and
// the test has shown nothing. One of two partners may never sleep, because the kernel
// may run it exactly when the other's message is there.
func (w *world) sleptWell(ns ...*node) {
	for _, n := range ns {
		if n.sleeps != 0 {
			return
		}
	}
	w.t.Errorf("%v never slept: Arm always returned false", ns)
}

// testWakeMessage: two sleepers play ping-pong, with random delays.
func testWakeMessage(w *world) {
	a, b, _, _ := w.pair()
	rounds := uint64(w.o.rounds(1000))
	w.run([]*node{a, b}, func(n *node) error {
		n.sleepy = true
		r := rand.New(rand.NewPCG(3, uint64(n.proc.Serial)))
		to := a
		if n == a {
			to = b
		}
		p, err := n.peer(to)
		if err != nil {
			return err
		}
		first := p.got
		for round := range rounds {
			if n == a || round > 0 {
				dawdle(r)
				if err := n.send(p, int(round%100)); err != nil {
					return err
				}
			}
			if n == b && round == rounds-1 {
				// b answers one message less, so that a is asleep
				// without hope at the end but for the last one.
				break
			}
			what := fmt.Sprintf("%v: message of round %d", n, round)
			if err := n.until(what, func() bool { return p.got > first+round }); err != nil {
				return err
			}
		}
		if n == b {
			if err := n.send(p, 0); err != nil {
				return err
			}
		}
		return nil
	})
	w.sleptWell(a, b)
}

// testWakeWritable: a sender that sleeps while full is woken by EvWritable.
func testWakeWritable(w *world) {
	a, b, ab, ba := w.pair()
	rounds := w.o.rounds(30)
	var full, over atomic.Bool
	w.run([]*node{a, b}, func(n *node) error {
		n.sleepy = true
		r := rand.New(rand.NewPCG(4, uint64(n.proc.Serial)))
		if n == b {
			// Reads nothing before a is blocked, then until a goes on: else a
			// fast reader would never let a see Full.
			last := false
			n.onOffer = func(*peer, offer) error { last = true; return nil }
			for deadline := time.Now().Add(w.o.Deadline); !last; {
				for !full.Load() && !over.Load() {
					if time.Now().After(deadline) {
						return fmt.Errorf("%v: the sender is never Full", n)
					}
					runtime.Gosched()
				}
				err := n.until("b waits for the last message", func() bool {
					dawdle(r)
					return last || !full.Load() && !over.Load()
				})
				if err != nil {
					return err
				}
			}
			return nil
		}
		for range rounds {
			for {
				st, err := n.trySend(ab, kindData, 0, n.caps.EagerMax/2, nil)
				if err != nil {
					return err
				}
				if st == transport.Broken {
					return errBroken
				}
				if st == transport.Full {
					break
				}
				if _, err := n.poll(); err != nil {
					return err
				}
			}
			full.Store(ab.full)
			err := n.until("a waits for EvWritable", func() bool { return !ab.full })
			full.Store(false)
			if err != nil {
				return err
			}
		}
		over.Store(true)
		return n.sendMsg(ab, kindOffer, 0, 0, []byte{})
	})
	w.wait("everything", func() bool { return ba.got == ab.sent })
	w.sleptWell(a)
}

// testWakeBulk: both ends of a bulk transfer sleep whenever they have nothing
// to do.
func testWakeBulk(w *world) {
	a, b, ab, ba := w.pair()
	src := corpus()
	rounds := w.o.rounds(200)
	maxSize := min(600000, w.o.MaxBulkBytes)
	w.run([]*node{a, b}, func(n *node) error {
		n.sleepy = true
		r := rand.New(rand.NewPCG(5, uint64(n.proc.Serial)))
		p := ab
		if n == b {
			p = ba
		}
		for round := range rounds {
			dawdle(r)
			// They take turns in offering.
			if (n == a) == (round%2 == 0) {
				size := 1 + int(mix(uint64(round))%uint64(maxSize))
				o, _, err := n.offer(p, src[round:round+size])
				if err != nil {
					return err
				}
				if err := n.until(fmt.Sprintf("%v: end of offer %d", n, round), func() bool { return o.done }); err != nil {
					return err
				}
				if err := ended(size, o); err != nil {
					return err
				}
				continue
			}
			if err := n.until(fmt.Sprintf("%v: offer %d", n, round), func() bool { return len(p.offers) == 1 }); err != nil {
				return err
			}
			of := p.offers[0]
			p.offers = p.offers[:0]
			dst := newTarget(of.bytes)
			dawdle(r)
			o, err := n.accept(p, of.desc, dst.buf())
			if err != nil {
				return err
			}
			if err := n.until(fmt.Sprintf("%v: end of accept %d", n, round), func() bool { return o.done }); err != nil {
				return err
			}
			if err := ended(of.bytes, o); err != nil {
				return err
			}
			if err := dst.check(src[round : round+of.bytes]); err != nil {
				return err
			}
		}
		return nil
	})
	w.sleptWell(a, b)
}

// testArmSeesEarlier: what arrived between the last Poll and Arm is not slept
// over: either Arm refuses or a wake comes although nothing more happens.
func testArmSeesEarlier(w *world) {
	a, b, ab, ba := w.pair()
	for range w.o.rounds(300) {
		w.wait("Arm of an idle process", func() bool {
			ok := b.tr.Arm()
			b.tr.Disarm()
			return ok
		})
		w.must(a.send(ab, 1))
		w.mustWake(b)
		w.wait("the message", func() bool { return ba.got == ab.sent })
	}
}

// mustWake arms n, while only the others are polled, and wants it to be
// refused or woken.
func (w *world) mustWake(n *node) {
	w.t.Helper()
	n.gone = true
	n.dropWake()
	if n.tr.Arm() {
		w.awaitWake(n)
	}
	n.gone = false
	n.tr.Disarm()
	n.tr.Disarm()
}

// dropWake forgets a wake that came while nobody slept.
func (n *node) dropWake() {
	select {
	case <-n.wakes:
	default:
	}
}

// awaitWake waits for the wake of n, which is armed, and polls the others.
func (w *world) awaitWake(n *node) {
	w.t.Helper()
	w.abort = nil
	done := make(chan error, 1)
	go func() {
		woken, err := n.awaitWake()
		if err == nil && !woken {
			err = fmt.Errorf("%v armed, a message was sent, nothing woke it", n)
		}
		done <- err
	}()
	var err error
	finished := false
	w.wait("the wake", func() bool {
		select {
		case err = <-done:
			finished = true
		default:
		}
		return finished
	})
	w.must(err)
}

// testArmQuiet: an idle process can arm, repeatedly, and an armed one that
// has an event does not sleep over it.
func testArmQuiet(w *world) {
	a, b, ab, ba := w.pair()
	for range w.o.rounds(200) {
		w.wait("Arm of an idle process", func() bool {
			ok := b.tr.Arm()
			b.tr.Disarm()
			return ok
		})
		b.dropWake()
		armed := b.tr.Arm()
		w.must(a.send(ab, 1))
		if !armed {
			b.tr.Disarm()
			w.wait("the message", func() bool { return ba.got == ab.sent })
			continue
		}
		b.gone = true
		w.awaitWake(b)
		b.gone = false
		b.tr.Disarm()
		b.tr.Disarm()
		w.wait("the message", func() bool { return ba.got == ab.sent })
	}
}
