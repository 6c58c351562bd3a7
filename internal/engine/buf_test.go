// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Parts of strided buffers, of parts of them, are windows of packed bytes.
func TestPartOfStrided(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, s := range shapes() {
		for range 300 {
			n := 1 + rnd.IntN(2000)
			data := noise(7, n)
			a := newStriped(&s, rnd.IntN(300), n, 0).put(data)
			lo := rnd.IntN(n)
			mid := lo + rnd.IntN(n-lo+1)
			hi := mid + rnd.IntN(n-mid+1)
			p := a.buf().Part(int64(lo), int64(hi-lo)).Part(int64(mid-lo), int64(hi-mid))
			got := make([]byte, hi-mid)
			p.Pack(got, 0)
			if !slices.Equal(got, data[mid:hi]) {
				t.Fatalf("%s: part [%d, %d) of %d bytes is wrong", s.name, mid, hi, n)
			}
			if m, ok := p.Memory(); ok && !slices.Equal(m, data[mid:hi]) {
				t.Fatalf("%s: memory of part [%d, %d) of %d bytes is wrong", s.name, mid, hi, n)
			}
			if p.Strided() && hi-mid == 1 {
				t.Fatalf("%s: one byte is strided", s.name)
			}
		}
	}
}

// window is the same memory from another place on.
func (a *striped) window(off, n, shift int) *striped {
	return &striped{a.shape, a.mem[shift:], off, n}
}

// addresses are the places of all bytes in packed order.
func (a *striped) addresses(shift int) (at []int) {
	for i := range a.n {
		at = append(at, shift+a.shape.place(a.off+i))
	}
	return at
}

// Overlaps and Same are exact: they say what lists of all bytes say.
func TestOverlapsAndSame(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	all := shapes()
	seen := map[[2]bool]int{}
	for range 20_000 {
		s, o := &all[rnd.IntN(len(all))], &all[rnd.IntN(len(all))]
		mem := newStriped(s, 0, 4000, 0).mem
		mem = append(mem, make([]byte, 8000)...)
		p := &striped{s, mem, rnd.IntN(200), rnd.IntN(200)}
		shift := rnd.IntN(3) * rnd.IntN(150)
		q := (&striped{o, mem, 0, 0}).window(rnd.IntN(200), rnd.IntN(200), shift)
		if rnd.IntN(3) == 0 {
			q = (&striped{s, mem, 0, 0}).window(p.off, p.n, 0)
			shift = 0
			if e := int(s.t.Extent()); p.off >= len(s.places) && rnd.IntN(2) == 0 {
				shift = e
				q = (&striped{s, mem, 0, 0}).window(p.off-len(s.places), p.n, e)
			}
		}
		x, y := p.addresses(0), q.addresses(shift)
		same := slices.Equal(x, y)
		overlaps := slices.ContainsFunc(x, func(v int) bool { return slices.Contains(y, v) })
		if got := p.buf().Overlaps(q.buf()); got != overlaps {
			t.Fatalf("%s %d+%d and %s %d+%d at %d: Overlaps is %v", s.name, p.off, p.n, o.name, q.off, q.n, shift, got)
		}
		if got := p.buf().Same(q.buf()); got != same {
			t.Fatalf("%s %d+%d and %s %d+%d at %d: Same is %v", s.name, p.off, p.n, o.name, q.off, q.n, shift, got)
		}
		seen[[2]bool{overlaps, same}]++
	}
	if len(seen) < 3 {
		t.Fatalf("cases met: %v", seen)
	}
}
