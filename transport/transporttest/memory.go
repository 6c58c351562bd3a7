// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"sync"

	"gompi/transport"
)

// sharer is the capability of a node to share memory.
func (w *world) sharer(n *node) transport.Sharer {
	s, ok := n.tr.(transport.Sharer)
	if !ok {
		w.t.Skipf("transport %s shares no memory", n.caps.Name)
	}
	return s
}

// singleCopy is the capability of a node to reach others' memory.
func (w *world) singleCopy(n *node) transport.SingleCopy {
	x, ok := n.tr.(transport.SingleCopy)
	if !ok {
		w.t.Skipf("transport %s exposes no memory", n.caps.Name)
	}
	return x
}

// reach makes a reach the memory of b.
func (w *world) reach(a, b *node) transport.Memory {
	w.t.Helper()
	key, value := w.singleCopy(b).Proof()
	m, err := w.singleCopy(a).Reach(w.contact(b.proc, a.proc), key, value)
	w.must(err)
	return m
}

// testShare: shared memory is zeroed, aligned and the same in all processes. It
// lives as long as a process uses it.
func testShare(w *world) {
	ns := w.open(3)
	owner := w.sharer(ns[0])
	for _, size := range []int{1, 64, 4095, 4096, 4097, 1 << 20} {
		for range 3 { // the second time in memory that was taken back
			mem, place, err := owner.Share(size)
			w.must(err)
			if at := reflect.ValueOf(mem).Pointer(); len(mem) != size || at%transport.ShareAlign != 0 {
				w.t.Fatalf("Share(%d) gives %d bytes at %#x", size, len(mem), at)
			}
			for i, c := range mem {
				if c != 0 {
					w.t.Fatalf("byte %d of new shared memory is %#02x", i, c)
				}
			}
			var views [][]byte
			for _, n := range ns[1:] {
				v, err := w.sharer(n).Join(w.contact(ns[0].proc, n.proc), place, size)
				w.must(err)
				views = append(views, v)
			}
			fill(mem, uint64(size))
			w.must(checkFill(views[0], uint64(size)))
			fill(views[0], 5)
			w.must(checkFill(views[1], 5))
			for i, v := range views {
				w.sharer(ns[1+i]).Leave(v)
			}
			w.must(checkFill(mem, 5))
			owner.Unshare(mem, place)
		}
	}
	for _, size := range []int{0, -1, math.MinInt, math.MaxInt} {
		if _, _, err := owner.Share(size); err == nil {
			w.t.Fatalf("Share(%d) succeeds", size)
		}
	}
}

// testShareOutlives: memory stays usable when its owner, or the transport by
// which it was joined, is closed.
func testShareOutlives(w *world) {
	ns := w.open(2)
	owner, other := w.sharer(ns[0]), w.sharer(ns[1])
	mem, place, err := owner.Share(5000)
	w.must(err)
	view, err := other.Join(w.contact(ns[0].proc, ns[1].proc), place, 5000)
	w.must(err)
	fill(mem, 1)
	w.close(ns[0])
	w.must(checkFill(view, 1))
	w.close(ns[1])
	fill(view, 2)
	w.must(checkFill(mem, 2))
	other.Leave(view)
	owner.Leave(mem)
}

// testJoinHostile: Join refuses memory that cannot have been shared.
func testJoinHostile(w *world) {
	ns := w.open(2)
	mem, place, err := w.sharer(ns[0]).Share(4096)
	w.must(err)
	for _, j := range []struct {
		place uint64
		n     int
	}{
		{0, 4096}, {place + 1, 4096}, {place + 64, 64}, {math.MaxUint64, 4096}, {1 << 63, 4096}, {math.MaxUint64 - 4095, 4096},
		{place, 0}, {place, -1}, {place, math.MinInt}, {place, math.MaxInt}, {place, math.MaxInt - 4095}, {place &^ 4095 << 20, 4096},
	} {
		if _, err := w.sharer(ns[1]).Join(w.contact(ns[0].proc, ns[1].proc), j.place, j.n); err == nil {
			w.t.Errorf("Join of %d bytes at %#x succeeds", j.n, j.place)
		}
	}
	w.sharer(ns[0]).Unshare(mem, place)
}

// testMemory: copies of all sizes from and to exposed memory, by several
// goroutines at once, without the process that has exposed it.
func testMemory(w *world) {
	ns := w.open(2)
	m := w.reach(ns[0], ns[1])
	const users = 4
	there := make([]byte, users<<20)
	fill(there, 9)
	want := bytes.Clone(there)
	key := w.singleCopy(ns[1]).Register(there)
	defer w.singleCopy(ns[1]).Unregister(key)
	if d, ok := m.(transport.Direct); ok && &d.Bytes(key)[0] != &there[0] {
		w.t.Error("Bytes is other memory than what is exposed")
	}
	var wg sync.WaitGroup
	for u := range users {
		wg.Go(func() {
			lo := u << 20
			if err := copies(m, key, lo, want[lo:lo+1<<20], rand.New(rand.NewPCG(uint64(u), 6)), w.o.rounds(300)); err != nil {
				w.t.Error(err)
			}
		})
	}
	wg.Wait()
	if !bytes.Equal(there, want) {
		w.t.Error("something else was written")
	}
}

// copies writes and reads at random in the memory from lo on, and keeps what
// must stand there in want.
func copies(m transport.Memory, key uint64, lo int, want []byte, r *rand.Rand, rounds int) error {
	for i := range rounds {
		n := r.IntN(1 + transport.MaxRead>>r.IntN(19))
		off := r.IntN(len(want) - n + 1)
		t := newTarget(n)
		switch i % 4 {
		case 0:
			fill(t.buf(), uint64(i))
			copy(want[off:], t.buf())
			if err := m.Write(t.buf(), key, int64(lo+off)); err != nil {
				return err
			}
			continue
		case 1:
			if err := m.Read(t.buf(), key, int64(lo+off)); err != nil {
				return err
			}
			if err := t.check(want[off : off+n]); err != nil {
				return err
			}
			continue
		}
		// Runs, from the last to the first, that together are MaxRead bytes at most.
		count := r.IntN(transport.MaxRuns + 1)
		runs, all := make([]transport.Run, count), make([]target, count)
		stride := len(want) / transport.MaxRuns
		for k := range runs {
			size := r.IntN(1 + transport.MaxRead/transport.MaxRuns>>r.IntN(13))
			at := (count-1-k)*stride + r.IntN(stride-size+1)
			all[k] = newTarget(size)
			runs[k] = transport.Run{Mem: all[k].buf(), Off: int64(lo + at)}
			if i%4 == 2 {
				fill(runs[k].Mem, uint64(k))
				copy(want[at:], runs[k].Mem)
			}
		}
		if i%4 == 2 {
			if err := m.WriteRuns(runs, key); err != nil {
				return err
			}
		}
		if err := m.ReadRuns(runs, key); err != nil {
			return err
		}
		for k, x := range runs {
			if err := all[k].check(want[x.Off-int64(lo):][:len(x.Mem)]); err != nil {
				return err
			}
		}
	}
	return nil
}

// testMemoryHostile: keys and offsets that cannot be valid give errors, also
// among valid ones, and touch nothing of the caller's.
func testMemoryHostile(w *world) {
	ns := w.open(2)
	m := w.reach(ns[0], ns[1])
	there := make([]byte, 100)
	key := w.singleCopy(ns[1]).Register(there)
	for _, a := range []struct {
		key uint64
		off int64
	}{
		{0, 0}, {1 << 63, 0}, {math.MaxUint64, 0}, {math.MaxUint64 - 7, 8}, {1 << 47, 0}, {1<<47 - 4, 0},
		{key, -1}, {key, math.MinInt64}, {key, math.MaxInt64}, {key, 1 << 47},
	} {
		b := newTarget(8)
		good := transport.Run{Mem: make([]byte, 8)}
		bad := transport.Run{Mem: b.buf(), Off: a.off}
		for what, err := range map[string]error{
			"Read":      m.Read(b.buf(), a.key, a.off),
			"Write":     m.Write(b.buf(), a.key, a.off),
			"ReadRuns":  m.ReadRuns([]transport.Run{good, bad, good}, a.key),
			"WriteRuns": m.WriteRuns([]transport.Run{good, bad, good}, a.key),
		} {
			if err == nil {
				w.t.Errorf("%s of key %#x at %d succeeds", what, a.key, a.off)
			}
		}
		w.must(b.check(nil))
	}
	for _, n := range []int{0, 1} { // nothing is fine, wherever
		runs := make([]transport.Run, n)
		w.must(m.ReadRuns(runs, key))
		w.must(m.WriteRuns(runs, key))
		w.must(m.Read(nil, key, 0))
		w.must(m.Write(nil, key, 100))
	}
	w.singleCopy(ns[1]).Unregister(key)
}

// testReachHostile: Reach fails unless the proof is right.
func testReachHostile(w *world) {
	ns := w.open(2)
	a, b := w.singleCopy(ns[0]), w.singleCopy(ns[1])
	key, value := b.Proof()
	for _, p := range [][2]uint64{{key, value + 1}, {key + 8, value}, {key + 1, value}, {0, value}, {math.MaxUint64, value}, {math.MaxUint64 - 7, value}} {
		if _, err := a.Reach(w.contact(ns[1].proc, ns[0].proc), p[0], p[1]); err == nil {
			w.t.Errorf("reached with proof %#x, %#x instead of %#x, %#x", p[0], p[1], key, value)
		}
	}
}
