// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"gompi/internal/fault"
)

// TestStock: pieces begin on a line, are zero, do not overlap, and what others
// may still use is not given out again.
func TestStock(t *testing.T) {
	for seed := range uint64(20) {
		p := (&fakeHost{}).process(1)
		k := stock{share: p}
		rnd := rand.New(rand.NewPCG(seed, 1))
		type user struct {
			piece
			mark byte
		}
		var live, lost []user
		for turn := range 400 {
			if n := len(live); n > 0 && rnd.IntN(2) == 0 {
				i := rnd.IntN(n)
				used := rnd.IntN(10) == 0
				k.put(live[i].piece, used)
				if used {
					lost = append(lost, live[i])
				}
				live[i] = live[n-1]
				live = live[:n-1]
			} else {
				n := 1 + rnd.IntN(1<<rnd.IntN(19))
				u, ok := k.take(n)
				if !ok {
					t.Fatalf("seed %d: no %d bytes", seed, n)
				}
				mem := u.mem()
				if len(mem) != n || cap(mem) != n || phaseOf(mem) != 0 {
					t.Fatalf("seed %d: %d bytes of %d, asked for %d, phase %d", seed, len(mem), cap(mem), n, phaseOf(mem))
				}
				if bytes.Count(mem, []byte{0}) != n {
					t.Fatalf("seed %d: %d bytes are not zero", seed, n)
				}
				live = append(live, user{u, byte(1 + turn%255)})
				fill(mem, live[len(live)-1].mark)
			}
			for _, u := range append(live, lost...) {
				if bytes.Count(u.mem(), []byte{u.mark}) != u.n {
					t.Fatalf("seed %d: a piece of %d bytes was given out twice", seed, u.n)
				}
			}
		}
	}
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// TestStockIsBounded: what does not fit has no place in it, and what was given
// back is joined again.
func TestStockIsBounded(t *testing.T) {
	p := (&fakeHost{}).process(1)
	k := stock{share: p}
	for _, n := range []int{-1, 0, maxPiece + 1} {
		if _, ok := k.take(n); ok {
			t.Errorf("%d bytes were given out", n)
		}
	}
	for _, n := range []int{100, maxPiece, 50_000, 1 << 20} {
		var all []piece
		sum := 0
		for {
			x, ok := k.take(n)
			if !ok {
				break
			}
			all, sum = append(all, x), sum+n
		}
		if sum < stockBytes*3/4 || sum > stockBytes || k.bytes > stockBytes {
			t.Errorf("pieces of %d bytes: %d bytes of arenas of %d", n, sum, k.bytes)
		}
		for _, x := range all {
			k.put(x, false)
		}
	}
	p.none = true
	k = stock{share: p}
	if _, ok := k.take(8); ok || k.bytes != 0 {
		t.Errorf("given out: %v, %d bytes are booked", ok, k.bytes)
	}
}

// TestStockEnds: the arenas go with the last piece of a process that ends.
func TestStockEnds(t *testing.T) {
	h := &fakeHost{}
	k := stock{share: h.process(1)}
	a, _ := k.take(8)
	b, _ := k.take(maxPiece)
	k.put(a, false)
	k.close()
	if h.left != 0 {
		t.Fatal("left in use")
	}
	if _, ok := k.take(maxPiece); ok {
		t.Error("an arena was made after the end")
	}
	k.put(b, true)
	if h.left != 2 {
		t.Errorf("%d arenas of 2 were left", h.left)
	}
}

// TestStockOfMany: several goroutines take and put.
func TestStockOfMany(t *testing.T) {
	k := stock{share: (&fakeHost{}).process(1)}
	var users sync.WaitGroup
	for u := range byte(6) {
		users.Go(func() {
			for i := range 300 {
				p, ok := k.take(1 + 1000*i)
				if !ok {
					continue
				}
				fill(p.mem(), u+1)
				if bytes.Count(p.mem(), []byte{u + 1}) != p.n {
					t.Error("a piece was given out twice")
				}
				k.put(p, false)
			}
		})
	}
	users.Wait()
	if k.live != 0 || k.bytes > stockBytes {
		t.Errorf("%d pieces in use, %d bytes", k.live, k.bytes)
	}
}

// TestSmallRegionsStayMapped: a target of memory that was used by an earlier
// region maps nothing, and what is abandoned is not used again.
func TestSmallRegionsStayMapped(t *testing.T) {
	spaces := testJobOf(t, 2)
	owner, other := spaces[0], spaces[1]
	reach := func(r *Region) *Target {
		d := r.Desc()
		x, f := other.Reach(owner.self, &d)
		if f != nil || x.path != isMapped(x) || int64(len(x.Mapped())) != x.Bytes() {
			t.Fatalf("%+v, path %T", f, x.path)
		}
		return x
	}
	var abandoned []*Region
	for i := range 100 {
		r, err := owner.Allocate(int64(1+10*i), 1)
		if err != nil {
			t.Fatal(err)
		}
		x := reach(r)
		x.Mapped()[10*i] = byte(i + 1)
		if r.Mem()[10*i] != byte(i+1) || bytes.Count(r.Mem(), []byte{0}) < len(r.Mem())-1 {
			t.Fatal("another memory")
		}
		part, err := other.Within(x, 1, int64(10*i), 1)
		if err != nil {
			t.Fatal(err)
		}
		d := part.Desc()
		y, f := owner.Reach(other.self, &d)
		if f != nil {
			t.Fatal(f)
		}
		if i > 0 && y.Mapped()[10*i-1] != byte(i+1) {
			t.Fatal("the part is another memory")
		}
		y.Close()
		part.Close()
		x.Close()
		if i%10 == 0 {
			r.Abandon()
			abandoned = append(abandoned, r)
			continue
		}
		r.Close()
		d = r.Desc()
		if _, f := other.Reach(owner.self, &d); f == nil || f.Class != fault.Closed {
			t.Fatalf("a closed region: %v", f)
		}
	}
	if n := other.cache.Len(); n > 2 { // of control blocks, of the memory
		t.Errorf("%d arenas are mapped", n)
	}
	for i, r := range abandoned {
		if r.mem[100*i] != byte(10*i+1) {
			t.Errorf("abandoned region %d was used again", i)
		}
	}
}
