// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// check holds a plan against the owners of each element, before and after.
func check(t testing.TB, old, next Split, stay []int) {
	t.Helper()
	was, wasAt := owners(t, old)
	is, isAt := owners(t, next)
	moved := int64(0)
	for i := range was {
		if to := is[i]; to >= len(stay) || stay[to] != was[i] {
			moved++
		}
	}
	if got := Moved(old, next, stay); got != moved {
		t.Fatalf("%d elements move from %d ranks to %d, Moved says %d", moved, old.Ranks(), next.Ranks(), got)
	}
	type pair struct{ from, to int }
	received, sent := map[pair][]Segment{}, map[pair][]Segment{}
	total := int64(0)
	for to := range next.Ranks() {
		at := int64(0)
		for p := range Receives(old, next, to) {
			if p.To != to || p.ToAt != at || p.Len <= 0 {
				t.Fatalf("rank %d receives %+v as element %d", to, p, at)
			}
			at += p.Len
			received[pair{p.From, to}] = append(received[pair{p.From, to}], p)
		}
		if at != next.Count(to) {
			t.Fatalf("rank %d receives %d elements of %d", to, at, next.Count(to))
		}
		total += at
	}
	if total != old.Elems() {
		t.Fatalf("%d elements of %d are received", total, old.Elems())
	}
	for from := range old.Ranks() {
		for p := range Sends(old, next, from) {
			sent[pair{from, p.To}] = append(sent[pair{from, p.To}], p)
		}
	}
	if len(sent) != len(received) {
		t.Fatalf("%d pairs send, %d receive", len(sent), len(received))
	}
	// Between two ranks both sides have the same elements, in the same order.
	elems := func(list []Segment) (l [][2]int64) {
		for _, p := range list {
			for k := range p.Len {
				l = append(l, [2]int64{p.FromAt + k, p.ToAt + k})
			}
		}
		return l
	}
	for pr, list := range received {
		if !slices.Equal(elems(list), elems(sent[pr])) {
			t.Fatalf("%d to %d: received %v, sent %v", pr.from, pr.to, list, sent[pr])
		}
	}
	type place struct {
		from, to     int
		fromAt, toAt int64
	}
	there := map[place]bool{}
	for i := range was {
		there[place{was[i], is[i], wasAt[i], isAt[i]}] = true
	}
	for pr, list := range received {
		for _, e := range elems(list) {
			if !there[place{pr.from, pr.to, e[0], e[1]}] {
				t.Fatalf("element %d of rank %d does not become element %d of rank %d", e[0], pr.from, e[1], pr.to)
			}
		}
	}
}

// stayers are some of the ranks of old, in order, at most as many as come to be.
func stayers(rng *rand.Rand, old, next int) (list []int) {
	for r := range old {
		if len(list) < next && rng.IntN(3) > 0 {
			list = append(list, r)
		}
	}
	return list
}

// Any layout over any number of ranks becomes any other, also of no elements, of fewer
// than there are ranks, and over as many ranks as before.
func TestPlans(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		before := some(rng)
		for i := range before {
			for range 6 {
				a, ns, nd := &before[i], 1+rng.IntN(8), 1+rng.IntN(8)
				old, err := a.Over(ns)
				if err != nil {
					t.Fatal(err)
				}
				stay := stayers(rng, ns, nd)
				next, l, err := a.Next(old, stay, nd)
				if err != nil {
					t.Fatal(err)
				}
				check(t, old, next, stay)
				if again, err := l.Over(nd); err != nil {
					t.Fatalf("%+v: %v", l, err)
				} else {
					check(t, next, again, nil)
					if n := Moved(next, again, upTo(nd)); n != 0 {
						t.Fatalf("%+v describes a split of which %d elements are elsewhere", l, n)
					}
				}
				for j := range before { // to another layout of as many elements
					if b := &before[j]; b.N == a.N && i != j {
						other, _, err := b.Next(old, stay, nd)
						if err != nil {
							t.Fatal(err)
						}
						check(t, old, other, stay)
					}
				}
			}
		}
	}
}

func upTo(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// Least movement moves what it must for the counts, never more than Block, and over many
// changes too.
func TestLeastMovement(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		l := Layout{N: rng.Int64N(100), Least: true}
		old, err := l.Over(1 + rng.IntN(8))
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			nd := 1 + rng.IntN(8)
			stay := stayers(rng, old.Ranks(), nd)
			next, m, err := l.Next(old, stay, nd)
			if err != nil {
				t.Fatal(err)
			}
			check(t, old, next, stay)
			must, sizes := int64(0), []int64{}
			for d := range nd {
				have := int64(0)
				if d < len(stay) {
					have = old.Count(stay[d])
				}
				must += max(0, next.Count(d)-have)
				sizes = append(sizes, next.Count(d))
			}
			moved := Moved(old, next, stay)
			if moved != must {
				t.Fatalf("%d elements move, %d had to", moved, must)
			}
			if slices.Max(sizes)-slices.Min(sizes) > 1 {
				t.Fatalf("%d elements are shared as %v", l.N, sizes)
			}
			if most := Moved(old, block{l.N, nd}, stay); moved > most {
				t.Fatalf("%d elements move, block moves %d", moved, most)
			}
			l, old = m, next
		}
	}
}

// What Next cannot do it says.
func TestNextRefuses(t *testing.T) {
	l, m := Layout{N: 8}, Layout{N: 9}
	old, _ := l.Over(2)
	for _, err := range []error{
		func() error { _, _, err := m.Next(old, nil, 2); return err }(),
		func() error { _, _, err := l.Next(old, []int{2}, 2); return err }(),
		func() error { _, _, err := l.Next(old, []int{0, 1}, 1); return err }(),
		func() error { _, _, err := l.Next(old, nil, 0); return err }(),
	} {
		if err == nil {
			t.Error("it is taken")
		}
	}
}

// FuzzPlans: what came from elsewhere is a layout, or is refused, and plans are right.
func FuzzPlans(f *testing.F) {
	f.Add(uint8(0), int64(10), int64(2), []byte{1, 2, 3}, uint8(2), uint8(4), false)
	f.Add(uint8(6), int64(12), int64(0), []byte{3, 4}, uint8(4), uint8(3), false)
	f.Add(uint8(5), int64(6), int64(1), []byte{1, 2, 3}, uint8(3), uint8(1), true)
	f.Fuzz(func(t *testing.T, kind uint8, n, size int64, list []byte, ns, nd uint8, least bool) {
		if n > 1000 || len(list) > 100 {
			return
		}
		l := Layout{Kind: Kind(kind % 9), N: n, Block: size, Least: least}
		for _, b := range list {
			l.Weights = append(l.Weights, int64(int8(b)))
		}
		l.Dims, l.Counts = l.Weights, [][]int64{l.Weights}
		old, err := l.Over(int(ns % 16))
		if err != nil {
			return
		}
		stay := upTo(min(old.Ranks(), int(nd%16)))
		next, _, err := l.Next(old, stay, int(nd%16))
		if err == nil {
			check(t, old, next, stay)
		}
	})
}

func BenchmarkReceivesBlock(b *testing.B) {
	old, next := block{1 << 30, 64}, block{1 << 30, 96}
	for b.Loop() {
		for r := range 96 {
			for range Receives(old, next, r) {
			}
		}
	}
}
