// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"gompi/transport"
)

// guard is the number of bytes around a destination that must not change.
const guard = 64

// target is a destination buffer with guards.
type target struct{ all []byte }

func newTarget(size int) target {
	t := target{make([]byte, size+2*guard)}
	scribble(t.all)
	return t
}

func (t target) buf() []byte { return t.all[guard : len(t.all)-guard : len(t.all)-guard] }

// check compares the first bytes of the buffer with want, and that nothing
// else was written.
func (t target) check(want []byte) error {
	got := t.buf()
	if !bytes.Equal(got[:len(want)], want) {
		for i := range want {
			if got[i] != want[i] {
				return fmt.Errorf("bulk: byte %d of %d is %#02x, want %#02x", i, len(want), got[i], want[i])
			}
		}
	}
	for _, part := range [][]byte{t.all[:guard], got[len(want):], t.all[len(t.all)-guard:]} {
		for i, c := range part {
			if c != scribbled {
				return fmt.Errorf("bulk of %d bytes: a byte outside was written (%d of %d)", len(want), i, len(part))
			}
		}
	}
	return nil
}

// ended checks that both ops ended well with n bytes.
func ended(n int, ops ...*op) error {
	for _, o := range ops {
		if o.err != nil || o.bytes != int64(n) {
			return fmt.Errorf("EvBulk (operation kind %d): %d bytes, error %v; want %d, nil", o.kind, o.bytes, o.err, n)
		}
	}
	return nil
}

// bulk moves src from a to b, into a buffer of room bytes.
func (w *world) bulk(a, b *node, ab, ba *peer, src []byte, room int) {
	w.t.Helper()
	oa, _, err := a.offer(ab, src)
	w.must(err)
	w.wait("the offer", func() bool { return len(ba.offers) == 1 })
	of := ba.offers[0]
	ba.offers = ba.offers[:0]
	dst := newTarget(room)
	ob, err := b.accept(ba, of.desc, dst.buf())
	w.must(err)
	w.wait(fmt.Sprintf("both ends of %d bytes into %d", len(src), room), func() bool { return oa.done && ob.done })
	n := min(len(src), room)
	w.must(ended(n, oa, ob))
	w.must(dst.check(src[:n]))
}

func testBulkSizes(w *world) {
	a, b, ab, ba := w.pair()
	src := corpus()
	sizes := []int{1, 2, 7, 8, 9, 63, 4095, 4096, 4097, 65535, 65537, 262143, 262144, 262145, 1 << 20, 1<<20 + 13, 3<<20 + 1, 8 << 20, 32<<20 - 1, 32 << 20}
	for i, size := range sizes {
		if size > w.o.MaxBulkBytes {
			break
		}
		off := i * 1237 % (len(src) - size)
		w.bulk(a, b, ab, ba, src[off:off+size], size)
		w.bulk(b, a, ba, ab, src[off:off+size], size)
		w.must(a.send(ab, 5))
	}
	w.wait("the messages between", func() bool { return ba.got == ab.sent })
}

func testBulkTruncated(w *world) {
	a, b, ab, ba := w.pair()
	src := corpus()
	for _, c := range []struct{ size, room int }{
		{2, 1}, {100, 99}, {4096, 1}, {300000, 299999}, {300000, 5}, {1 << 20, 262144},
		{1 << 20, 1<<20 - 1}, {5 << 20, 3<<20 + 3}, {100, 4096}, {1 << 20, 2 << 20},
	} {
		if c.size > w.o.MaxBulkBytes {
			continue
		}
		w.bulk(a, b, ab, ba, src[c.size/3:c.size/3+c.size], c.room)
		w.bulk(b, a, ba, ab, src[c.size/3:c.size/3+c.size], c.room)
	}
}

// testBulkMany: many transfers at once both ways, accepted in random order,
// with messages among them, each process in a goroutine.
func testBulkMany(w *world) {
	ns := w.open(3)
	src := corpus()
	rounds := w.o.rounds(20)
	maxSize := min(1<<20, w.o.MaxBulkBytes)
	w.run(ns, func(n *node) error {
		r := rand.New(rand.NewPCG(1, uint64(n.proc.Serial)))
		for round := range rounds {
			if err := n.bulkRound(ns, r, src, round, maxSize); err != nil {
				return err
			}
		}
		return nil
	})
}

// bulkRound offers four buffers to each of the others and takes theirs.
func (n *node) bulkRound(ns []*node, r *rand.Rand, src []byte, round, maxSize int) error {
	const each = 4
	var sends []*op
	var sizes []int
	for _, to := range ns {
		if to == n {
			continue
		}
		p, err := n.peer(to)
		if err != nil {
			return err
		}
		for range each {
			size := 1 + r.IntN(maxSize)>>r.IntN(16)
			// The offset is known to the receiver from the size.
			o, _, err := n.offer(p, src[size%1000:size%1000+size])
			if err != nil {
				return err
			}
			sends, sizes = append(sends, o), append(sizes, size)
			if err := n.send(p, r.IntN(300)); err != nil {
				return err
			}
		}
	}
	type arriving struct {
		o    *op
		dst  target
		size int
	}
	var recvs []arriving
	// A peer may be a round ahead; then some of its next offers count here
	// and some of another's later. In the end the sums are equal.
	var bad error
	taken := map[*peer]int{}
	want := each * (len(ns) - 1)
	if err := n.until(fmt.Sprintf("%v: offers of round %d", n, round), func() bool {
		for _, p := range n.peers {
			for len(p.offers) > 0 && taken[p] < each && bad == nil {
				taken[p]++
				k := r.IntN(len(p.offers))
				of := p.offers[k]
				p.offers = append(p.offers[:k], p.offers[k+1:]...)
				dst := newTarget(of.bytes)
				var o *op
				o, bad = n.accept(p, of.desc, dst.buf())
				recvs = append(recvs, arriving{o, dst, of.bytes})
			}
		}
		return len(recvs) == want || bad != nil
	}); err != nil {
		return err
	}
	if bad != nil {
		return bad
	}
	if err := n.until(fmt.Sprintf("%v: round %d of bulks", n, round), func() bool {
		for _, o := range sends {
			if !o.done {
				return false
			}
		}
		for _, a := range recvs {
			if !a.o.done {
				return false
			}
		}
		return true
	}); err != nil {
		return err
	}
	for i, o := range sends {
		if err := ended(sizes[i], o); err != nil {
			return err
		}
	}
	for _, a := range recvs {
		if err := ended(a.size, a.o); err != nil {
			return err
		}
		if err := a.dst.check(src[a.size%1000 : a.size%1000+a.size]); err != nil {
			return err
		}
	}
	return nil
}

func testBulkWithdraw(w *world) {
	a, b, ab, ba := w.pair()
	src := corpus()
	for i := range w.o.rounds(100) {
		size := 1000 + i*10000
		if size > w.o.MaxBulkBytes {
			break
		}
		_, tok, err := a.offer(ab, src[:size])
		w.must(err)
		// Every second time the peer has seen the offer before it ends.
		if i%2 == 0 {
			w.wait("the offer", func() bool { return ba.got == ab.sent })
		}
		a.withdraw(ab, tok)
		w.must(a.send(ab, 3))
		w.must(b.send(ba, 3))
		w.wait("messages", func() bool { return ba.got == ab.sent && ab.got == ba.sent })
		ba.offers = ba.offers[:0]
		w.bulk(a, b, ab, ba, src[i:i+size], size)
	}
}

// refused accepts desc, which is no valid descriptor: either Accept says so,
// or the transfer ends with an error.
func (w *world) refused(n *node, p *peer, desc []byte, what string) {
	w.t.Helper()
	dst := make([]byte, 1000)
	o, err := n.accept(p, desc, dst)
	if err != nil {
		return
	}
	w.wait("the end of a transfer with "+what, func() bool { return o.done })
	if o.err == nil {
		w.t.Fatalf("Accept of %s %x moved %d bytes", what, desc, o.bytes)
	}
}

func testBulkBadDescriptor(w *world) {
	a, b, ab, ba := w.pair()
	r := rand.New(rand.NewPCG(7, 7))
	src := corpus()[:100000]
	for i := range w.o.rounds(500) {
		desc := make([]byte, r.IntN(transport.MaxDesc+1))
		for k := range desc {
			desc[k] = byte(r.Uint32())
		}
		w.refused(b, ba, desc, "random bytes")
		if i%50 != 0 {
			continue
		}
		// A good one, cut and lengthened, then used.
		oa, _, err := a.offer(ab, src)
		w.must(err)
		w.wait("the offer", func() bool { return len(ba.offers) == 1 })
		good := ba.offers[0].desc
		ba.offers = ba.offers[:0]
		for k := range good {
			w.refused(b, ba, good[:k], "a descriptor cut short")
		}
		if len(good) < transport.MaxDesc {
			w.refused(b, ba, append(bytes.Clone(good), 0), "a descriptor with a byte too many")
		}
		dst := newTarget(len(src))
		ob, err := b.accept(ba, good, dst.buf())
		w.must(err)
		w.wait("the good transfer", func() bool { return oa.done && ob.done })
		w.must(ended(len(src), oa, ob))
		w.must(dst.check(src))
	}
	w.must(a.send(ab, 9))
	w.must(b.send(ba, 9))
	w.wait("messages", func() bool { return ba.got == ab.sent && ab.got == ba.sent })
}

// testBulkStale uses descriptors of transfers that have ended, while others
// are open.
func testBulkStale(w *world) {
	a, b, ab, ba := w.pair()
	src := corpus()
	for i := range w.o.rounds(50) {
		size := 500 + i*3000
		if size > w.o.MaxBulkBytes {
			break
		}
		oa, _, err := a.offer(ab, src[:size])
		w.must(err)
		w.wait("the offer", func() bool { return len(ba.offers) == 1 })
		desc := ba.offers[0].desc
		ba.offers = ba.offers[:0]
		dst := newTarget(size)
		ob, err := b.accept(ba, desc, dst.buf())
		w.must(err)
		w.wait("the transfer", func() bool { return oa.done && ob.done })
		w.must(ended(size, oa, ob))

		next, _, err := a.offer(ab, src[1:1+size])
		w.must(err)
		w.wait("the next offer", func() bool { return len(ba.offers) == 1 })
		w.refused(b, ba, desc, "a stale descriptor")
		if next.done {
			w.t.Fatal("a stale descriptor ended another offer")
		}
		dst = newTarget(size)
		ob, err = b.accept(ba, ba.offers[0].desc, dst.buf())
		ba.offers = ba.offers[:0]
		w.must(err)
		w.wait("the next transfer", func() bool { return next.done && ob.done })
		w.must(ended(size, next, ob))
		w.must(dst.check(src[1 : 1+size]))
	}
}

// testBulkOutstanding: the cost of a transfer does not grow with how many are
// open. They are accepted, or withdrawn, in any order.
func testBulkOutstanding(w *world) {
	const size = 9000
	a, b, ab, ba := w.pair()
	src := corpus()[:size]
	r := rand.New(rand.NewPCG(5, 5))
	count := w.o.rounds(20_000)
	var toks []transport.Token
	for len(toks) < count {
		_, tok, err := a.offer(ab, src)
		w.must(err)
		toks = append(toks, tok)
	}
	w.wait("the offers", func() bool { return len(ba.offers) == count })
	dst := newTarget(size)
	open := 0
	for n, i := range r.Perm(count) {
		if n%2 == 0 {
			a.withdraw(ab, toks[i])
			continue
		}
		// All fill the same memory with the same bytes.
		_, err := b.accept(ba, ba.offers[i].desc, dst.buf())
		w.must(err)
		if open++; open%1000 == 0 {
			_, err := w.pollAll()
			w.must(err)
		}
	}
	w.wait("all transfers", func() bool { return len(a.ops) == 0 && len(b.ops) == 0 })
	w.must(dst.check(src))
}
