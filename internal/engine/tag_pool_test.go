// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/rand/v2"
	"testing"

	"gompi/internal/engine/shmcoll"
	"gompi/internal/host/wait"
)

// Tags of partitions come around: those in use are passed over, and a range that was freed is
// given out again when all behind it were.
func TestPartTags(t *testing.T) {
	var x tagPool
	rnd := rand.New(rand.NewPCG(3, 4))
	type held struct{ from, n uint32 }
	var live []held
	for k := range 200_000 {
		n := uint32(1 + rnd.IntN(MaxPartitions))
		from, ok := x.take(n)
		if !ok || uint64(from)+uint64(n) > maxPartitionTag {
			t.Fatalf("take %d: %d tags at %d, %v", k, n, from, ok)
		}
		for _, h := range live {
			if from < h.from+h.n && h.from < from+n {
				t.Fatalf("take %d: [%d, +%d) and [%d, +%d)", k, from, n, h.from, h.n)
			}
		}
		if live = append(live, held{from, n}); len(live) > 20 {
			i := 1 + rnd.IntN(len(live)-1) // the first stays
			x.free(live[i].from)
			live = append(live[:i], live[i+1:]...)
		}
	}
	x = tagPool{}
	for range maxPartitionTag / MaxPartitions {
		if _, ok := x.take(MaxPartitions); !ok {
			t.Fatal("there is room")
		}
	}
	if _, ok := x.take(1); ok {
		t.Fatal("a tag beyond the last")
	}
	x.free(5 * MaxPartitions)
	if from, ok := x.take(MaxPartitions); !ok || from != 5*MaxPartitions {
		t.Fatalf("the one range that is free: %d, %v", from, ok)
	}
}

// Places of persistent collectives come around: no rank has one that another rank still uses.
func TestPersistentPlaces(t *testing.T) {
	var cs [2]*Context
	for r := range cs {
		e := &Engine{}
		e.mu = wait.NewGate()
		cs[r] = &Context{e: e, ringFrom: -1}
	}
	agreements := 0
	next := func() (n CollTag) {
		var tags [2]CollTag
		for r, c := range cs {
			tags[r] = c.NumberPersistent()
		}
		if tags[0] == 0 && tags[1] == 0 {
			agreements++
			var all []uint64
			for _, c := range cs {
				all = append(all, c.PersistentPlaces()...)
			}
			for r, c := range cs {
				c.AgreePlaces(all)
				tags[r] = c.NumberPersistent()
			}
		}
		if tags[0] != tags[1] || tags[0] == 0 {
			t.Fatalf("the ranks have numbers %#x", tags)
		}
		return tags[0]
	}
	for range shmcoll.PersistentRings { // whose places are not used again
		n := next()
		cs[0].FreePersistent(n)
		cs[1].FreePersistent(n)
	}
	first, second := next(), next() // of which each rank frees one
	cs[0].FreePersistent(first)
	cs[1].FreePersistent(second)
	for range 2*MaxPersistent + 10 {
		n := next()
		if n == first || n == second {
			t.Fatalf("number %#x is given out again, and in use", n)
		}
		for _, c := range cs {
			if got := c.collTag(n); got != int32(n-1) {
				t.Fatalf("start 0 of number %#x has tag %#x", n, got)
			}
			c.FreePersistent(n)
		}
	}
	if want := MaxPersistent/placesInSection + 1; agreements < want || agreements > want+2 {
		t.Errorf("%d agreements", agreements)
	}
	cs[1].FreePersistent(first)
	cs[0].FreePersistent(second)
	for range MaxPersistent {
		n := next()
		if n == first {
			return
		}
		cs[0].FreePersistent(n)
		cs[1].FreePersistent(n)
	}
	t.Error("what all have freed is not used again")
}
