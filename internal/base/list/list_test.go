// SPDX-License-Identifier: Apache-2.0

package list

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A list keeps its order, whatever its readers take out and add meanwhile.
func TestRing(t *testing.T) {
	type item struct {
		at Link[item]
		n  int
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	var l List[item]
	var twin []*item
	last := 0
	add := func() {
		it := &item{n: last}
		last++
		l.Add(&it.at, it)
		twin = append(twin, it)
	}
	remove := func() {
		if len(twin) > 0 {
			i := rnd.IntN(len(twin))
			twin[i].at.Remove()
			twin[i].at.Remove() // nothing any more
			twin = slices.Delete(twin, i, i+1)
		}
	}
	for range 300 {
		for range rnd.IntN(6) {
			add()
		}
		known, seen, here := last, map[int]bool{}, slices.Clone(twin)
		for it := range l.Each {
			if it.n >= known || seen[it.n] || !slices.Contains(twin, it) {
				t.Fatalf("%d is visited: twice %v, of %d that were there", it.n, seen[it.n], known)
			}
			seen[it.n] = true
			switch rnd.IntN(4) {
			case 0:
				remove()
			case 1:
				add()
			case 2:
				for range l.Each { // inside another one
				}
			}
		}
		for _, it := range here {
			if it.at.Linked() && !seen[it.n] {
				t.Fatalf("%d of %d was passed over", it.n, known)
			}
		}
		for range rnd.IntN(5) {
			remove()
		}
		n := 0
		for it := range l.All {
			if n++; !slices.Contains(twin, it) {
				t.Fatalf("%d is still there", it.n)
			}
		}
		if n != len(twin) {
			t.Fatalf("%d are there, want %d", n, len(twin))
		}
	}
}
