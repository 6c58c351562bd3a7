// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
)

// testRandom: processes in goroutines do random things with random partners.
// The model is the pattern in every message (number, kind, sizes and content
// follow from the pair) and the corpus for bulks; in the end what was sent
// has arrived, and every operation has ended once.
func testRandom(w *world) {
	for seed := range 3 {
		ns := w.open(procs)
		var sums tally
		w.run(ns, func(n *node) error {
			a := &actor{n: n, all: ns, r: rand.New(rand.NewPCG(uint64(seed), uint64(n.proc.Serial)))}
			return a.play(w.o.rounds(1500), &sums)
		})
		for _, n := range ns {
			w.close(n)
		}
		w.nodes = w.nodes[:0]
	}
}

// procs is the number of processes in testRandom.
const procs = 4

// tally counts what the processes of testRandom have sent.
type tally struct {
	done atomic.Int32                // processes that send no more
	sent [procs][procs]atomic.Uint64 // messages from i to j; final when done is procs
}

// actor plays one process of testRandom.
type actor struct {
	n     *node
	all   []*node
	r     *rand.Rand
	sends []*op
	sizes []int
	recvs []taken
}

// taken is a bulk being received.
type taken struct {
	o    *op
	dst  target
	want []byte
}

// window is the part of the corpus that an offer of a size sends: the
// receiver knows it from the size.
func window(size int) []byte { return corpus()[size%4096 : size%4096+size] }

func (a *actor) play(steps int, sums *tally) error {
	n, r := a.n, a.r
	maxBulk := min(400000, n.w.o.MaxBulkBytes)
	var (
		p   *peer
		err error
	)
	for range steps {
		if n.sleepy = r.IntN(3) == 0; r.IntN(50) == 0 {
			dawdle(r)
		}
		to := a.all[r.IntN(len(a.all))]
		if to == n {
			_, err = n.poll()
		} else if p, err = n.peer(to); err == nil {
			switch k := r.IntN(20); {
			case k < 12:
				err = n.send(p, r.IntN(1+n.caps.EagerMax>>r.IntN(12)))
			case k < 14 && len(a.sends) < 1000:
				size := 1 + r.IntN(maxBulk)>>r.IntN(12)
				var o *op
				if o, _, err = n.offer(p, window(size)); err == nil {
					a.sends, a.sizes = append(a.sends, o), append(a.sizes, size)
				}
			default:
				n.ev = n.ev[:1+r.IntN(cap(n.ev))]
				_, err = n.poll()
			}
		}
		if err == nil {
			err = a.takeSome(r.IntN(3))
		}
		if err != nil {
			return err
		}
	}
	return a.finish(sums)
}

// takeSome accepts up to k of the offers that wait, truncating some.
func (a *actor) takeSome(k int) error {
	for _, p := range a.n.peers {
		for ; k > 0 && len(p.offers) > 0; k-- {
			i := a.r.IntN(len(p.offers))
			of := p.offers[i]
			p.offers = append(p.offers[:i], p.offers[i+1:]...)
			dst := newTarget(of.bytes)
			o, err := a.n.accept(p, of.desc, dst.buf())
			if err != nil {
				return err
			}
			a.recvs = append(a.recvs, taken{o, dst, window(of.bytes)})
		}
	}
	return nil
}

// finish waits until everything sent to anybody has arrived and ended.
func (a *actor) finish(sums *tally) error {
	n := a.n
	me := int(n.proc.Serial - a.all[0].proc.Serial)
	for i, to := range a.all {
		if p := n.peers[to.proc]; p != nil {
			sums.sent[me][i].Store(p.sent)
		}
	}
	sums.done.Add(1)
	n.sleepy = false
	var bad error
	if err := n.until(fmt.Sprintf("%v: the others stop sending", n), func() bool {
		bad = a.takeSome(1)
		return bad != nil || sums.done.Load() == procs
	}); err != nil || bad != nil {
		return errors.Join(err, bad)
	}
	if err := n.until(fmt.Sprintf("%v: everything arrives", n), func() bool {
		if bad = a.takeSome(10); bad != nil {
			return true
		}
		for i, from := range a.all {
			want := sums.sent[i][me].Load()
			p := n.peers[from.proc]
			if want > 0 && (p == nil || p.got < want || len(p.offers) > 0) {
				return false
			}
		}
		return len(n.ops) == 0 && n.tr.Flushed()
	}); err != nil || bad != nil {
		return errors.Join(err, bad)
	}
	for i, o := range a.sends {
		if err := ended(a.sizes[i], o); err != nil {
			return err
		}
	}
	for _, t := range a.recvs {
		if err := ended(len(t.want), t.o); err != nil {
			return err
		}
		if err := t.dst.check(t.want); err != nil {
			return err
		}
	}
	return nil
}
