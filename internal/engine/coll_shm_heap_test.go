// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine/shmcoll"
)

// child is the communicator of some ranks of ns, in their order, in the block that
// the one of them with that index offers. nil: that has none.
func child(t testing.TB, ns []*node, giver int, serial uint32, ranks ...int) []*node {
	t.Helper()
	place := ns[ranks[giver]].Offer(ns[ranks[giver]].ctx)
	if place == 0 {
		return nil
	}
	return childAt(t, ns, place, serial, ranks...)
}

func childAt(t testing.TB, ns []*node, place, serial uint32, ranks ...int) (made []*node) {
	t.Helper()
	var b wire.MembersBuilder
	for _, r := range ranks {
		b.Add(wire.Range{First: ns[r].Self(), Count: 1})
	}
	members := b.Members()
	for _, r := range ranks {
		c, err := ns[r].NewContextIn(ns[r].ctx, place, wire.ContextID{Creator: proc(1), Serial: 1000 + serial}, members, nil)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, &node{Engine: ns[r].Engine, ctl: ns[r].ctl, ctx: c})
	}
	return made
}

// givers is of how many ranks all give out blocks where memory is taken at once.
const givers = 8

func free(ns ...*node) {
	for _, n := range ns {
		n.FreeContext(n.ctx)
	}
}

// heapOf is how many blocks a rank has given out, and how many heaps it uses.
func heapOf(n *node) (blocks, heaps int) {
	n.Lock()
	defer n.Unlock()
	for h := range n.heaps {
		blocks += h.Blocks()
	}
	return blocks, len(n.heaps)
}

// barrier is a call on each of ns, which must have their area in it.
func barrier(t testing.TB, ns []*node) {
	t.Helper()
	for r, f := range everywhere(t, ns, func(i int) *CollArgs { return ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0) }) {
		if f != nil || ns[r].ctx.area == nil || !ns[r].ctx.area.inBlock {
			t.Fatalf("rank %d of %d: %+v, area %v", r, len(ns), f, ns[r].ctx.area != nil)
		}
	}
}

// A communicator made from one that has memory has its area from its first call
// on, in any order of ranks, also one made from such a one; nothing that stood in a
// block is there for the next, and however many come and go few blocks are used.
func TestBlocks(t *testing.T) {
	for _, size := range []int{2, 6, 70} {
		ns := areaJob(t, size, nil)
		rnd := rand.New(rand.NewPCG(uint64(size), 3))
		rounds := 30
		if size > shmcoll.TreeRanks {
			rounds = 4
		}
		serial := uint32(0)
		for k := range rounds {
			n := 2 + rnd.IntN(size-1)
			if k%2 == 0 {
				n = size
			}
			serial++
			part := child(t, ns, 0, serial, rnd.Perm(size)[:n]...)
			if part == nil && size <= givers {
				t.Fatalf("round %d: no block", k)
			} else if part == nil {
				continue
			}
			used := part
			if n > 2 && k%3 == 0 { // a child of it
				serial++
				used = child(t, part, 1, serial, 0, n-1)
				if used == nil && size <= givers {
					t.Fatalf("round %d: no block for a child", k)
				} else if used == nil {
					used = part
				} else {
					free(part...)
					part = nil
				}
			}
			barrier(t, used)
			for call := range 8 {
				op := []collectives.Op{collectives.OpAllreduce, collectives.OpBcast}[rnd.IntN(2)]
				count, root := []int{1, 5, 40}[rnd.IntN(3)], rnd.IntN(len(used))
				wants := make([]func(int) uint64, len(used))
				outs := make([][]uint64, len(used))
				for r, f := range everywhere(t, used, func(i int) *CollArgs {
					var in []uint64
					in, outs[i], wants[i] = areaCase(op, call, i, len(used), count, root, false)
					return used[i].call64(op, in, outs[i], count, root)
				}) {
					if f != nil {
						t.Fatalf("%v of rank %d: %+v", op, r, f)
					}
					for i, v := range outs[r] {
						if v != wants[r](i) {
							t.Fatalf("round %d, %v, rank %d of %d, element %d is %x, want %x", k, op, r, len(used), i, v, wants[r](i))
						}
					}
				}
			}
			free(used...)
			if len(part) > 0 && &part[0] != &used[0] {
				free(part...)
			}
		}
		for r, n := range ns {
			if blocks, heaps := heapOf(n); blocks > 8 || heaps != 1 {
				t.Errorf("rank %d of %d has given out %d blocks, and uses %d heaps", r, size, blocks, heaps)
			}
			free(n)
			if _, heaps := heapOf(n); heaps != 0 {
				t.Errorf("rank %d of %d still uses memory", r, size)
			}
		}
	}
}

// As long as one uses a block it is not given out; who dies counts as one that has
// left; who never came to it keeps it.
func TestBlocksInUse(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, ns, part []*node)
		back bool
	}{
		{"all leave", func(_ *testing.T, _, part []*node) { free(part...) }, true},
		{"one stays", func(_ *testing.T, _, part []*node) { free(part[:2]...) }, false},
		{"one dies", func(_ *testing.T, ns, part []*node) {
			free(part[:2]...)
			ns[0].ProcFailed(proc(3), "was killed")
		}, true},
		{"one leaves the job", func(t *testing.T, ns, part []*node) {
			free(part[:2]...)
			ns[2].Close(ended())
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ns := areaJob(t, 3, nil)
			part := child(t, ns, 0, 1, 0, 1, 2)
			barrier(t, part)
			c.do(t, ns, part)
			ns[0].Lock()
			h := ns[0].ctx.area.heap
			if back := h.Blocks() == 0; back != c.back {
				t.Errorf("given back: %v", back)
			}
			ns[0].Unlock()
		})
	}
	t.Run("one never comes", func(t *testing.T) {
		ns := areaJob(t, 3, nil)
		place := ns[0].Offer(ns[0].ctx)
		for _, n := range ns[:2] {
			c, err := n.NewContextIn(n.ctx, place, wire.ContextID{Creator: proc(1), Serial: 1}, n.ctx.Members, nil)
			if err != nil {
				t.Fatal(err)
			}
			n.FreeContext(c)
		}
		if next := ns[0].Offer(ns[0].ctx); next == place || next == 0 {
			t.Errorf("%d after %d", next, place)
		}
		ns[0].TakeBack(ns[0].ctx, ns[0].Offer(ns[0].ctx))
		if blocks, _ := heapOf(ns[0]); blocks != 2 {
			t.Errorf("%d blocks", blocks)
		}
	})
}

// When a range is used up there is no offer, until a block is left.
func TestBlocksUsedUp(t *testing.T) {
	ns := areaJob(t, 2, nil)
	var parts [][]*node
	for serial := uint32(1); ; serial++ {
		part := child(t, ns, 0, serial, 0, 1)
		if part == nil {
			break
		}
		parts = append(parts, part)
	}
	if len(parts) != 2 {
		t.Fatalf("%d blocks", len(parts))
	}
	for _, part := range parts {
		barrier(t, part)
	}
	free(parts[1]...)
	part := child(t, ns, 0, 100, 1, 0)
	if part == nil {
		t.Fatal("no block after one was left")
	}
	barrier(t, part)
	barrier(t, parts[0])
}

// A place that cannot be ends the communicator, and one of another size is not
// used.
func TestBlocksOfOthers(t *testing.T) {
	ns := areaJob(t, 3, nil)
	m := wire.NewMembers(wire.Range{First: proc(1), Count: 2})
	id := wire.ContextID{Creator: proc(1), Serial: 50}
	pair := []*node{{Engine: ns[0].Engine, ctl: ns[0].ctl}, {Engine: ns[1].Engine, ctl: ns[1].ctl}}
	join := func(places [2]uint32, members [2]wire.Members) {
		id.Serial++
		for i, n := range pair {
			c, err := n.NewContextIn(ns[i].ctx, places[i], id, members[i], nil)
			if err != nil {
				t.Fatal(err)
			}
			n.ctx = c
		}
	}
	for _, place := range []uint32{1, 1 << 20, ^uint32(0)} {
		good := ns[0].Offer(ns[0].ctx)
		join([2]uint32{good, place}, [2]wire.Members{m, m})
		ns[0].TakeBack(ns[0].ctx, good)
		for r, f := range everywhere(t, pair, func(i int) *CollArgs { return pair[i].call64(collectives.OpBarrier, nil, nil, 0, 0) }) {
			if f.Code() != fault.Revoked {
				t.Errorf("place %#x, rank %d: %+v", place, r, f)
			}
		}
	}
	good := ns[0].Offer(ns[0].ctx)
	join([2]uint32{good, good}, [2]wire.Members{ns[0].ctx.Members, m})
	f := soon(t, "the call", func() *fault.Fault {
		return pair[1].Collective(pair[1].ctx, pair[1].call64(collectives.OpBarrier, nil, nil, 0, 0))
	})
	if f == nil {
		t.Error("a barrier of two in the memory of three ends well")
	}
}

// Several communicators in one memory are used at once, also while ranks sleep.
func TestBlocksAtOnce(t *testing.T) {
	const size, users = 4, 3
	ns := areaJob(t, size, nil)
	parts := make([][]*node, users)
	for u := range parts {
		parts[u] = child(t, ns, u%2, uint32(u+1), 0, 1, 2, 3)
		if parts[u] == nil {
			parts[u] = childAt(t, ns, 0, uint32(u+1), 0, 1, 2, 3)
		}
	}
	soon(t, "program", func() error {
		var wg sync.WaitGroup
		for u, part := range parts {
			for r, n := range part {
				wg.Go(func() {
					for k := range 30 {
						in, out := []uint64{uint64(k + r)}, []uint64{0}
						if f := n.Collective(n.ctx, n.call64(collectives.OpAllreduce, in, out, 1, 0)); f != nil {
							t.Errorf("user %d, rank %d: %+v", u, r, f)
							return
						}
						if r == (k+u)%size {
							yield()
						}
					}
				})
			}
		}
		wg.Wait()
		return nil
	})
	for _, part := range slices.Backward(parts) {
		free(part...)
	}
}

// A child goes on when the communicator that it was made from is freed, and its
// memory ends with it.
func TestBlockOutlivesParent(t *testing.T) {
	x := newJoining(t, 3)
	x.goOn <- nil
	x.faults(t, 3)
	part := child(t, x.ns, 0, 1, 2, 0, 1)
	free(x.ns...)
	barrier(t, part)
	if n, g := x.held.Load(), x.given.Load(); n != 3 || g != 3 {
		t.Errorf("%d pieces are held, %d given", n, g)
	}
	free(part...)
	if n, g := x.held.Load(), x.given.Load(); n != 0 || g != 0 {
		t.Errorf("%d pieces are held at the end, %d given", n, g)
	}
}

// What is lent stays for those who have not been told of a child yet when the
// communicator that it is of is freed, and ends with the process.
func TestLentOutlivesLender(t *testing.T) {
	x := newLending(t)
	x.goOn <- nil
	warmArea(t, x.ns)
	place := x.ns[0].Offer(x.ns[0].ctx)
	free(x.ns[1:]...)
	part := childAt(t, x.ns, place, 1, 0, 2, 1)
	free(x.ns[0])
	barrier(t, part)
	free(part...)
	if n, g := x.held.Load(), x.given.Load(); n != 3 || g != 3 {
		t.Errorf("%d pieces are held, %d given", n, g)
	}
	for _, n := range x.ns {
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n, g := x.held.Load(), x.given.Load(); n != 0 || g != 0 {
		t.Errorf("%d pieces are held at the end, %d given", n, g)
	}
}

// No more than half of a rank's blocks are lent, until they come back.
func TestHalfIsLent(t *testing.T) {
	ns := areaJob(t, 3, nil)
	n := ns[0]
	if n.OfferLent() != 0 {
		t.Error("a block of what is not lent")
	}
	n.Lend(n.ctx)
	lent := n.OfferLent()
	part := childAt(t, ns, lent, 1, 0, 1, 2)
	var own []uint32
	for place := n.Offer(n.ctx); place != 0; place = n.Offer(n.ctx) {
		own = append(own, place)
	}
	if place := n.OfferLent(); lent == 0 || place != 0 || len(own) == 0 {
		t.Errorf("block %d is lent, then %d beside %d others", lent, place, len(own))
	}
	for _, place := range own {
		n.TakeBack(n.ctx, place)
	}
	barrier(t, part)
	free(part...)
	if n.OfferLent() == 0 {
		t.Error("no block when all have come back")
	}
}

// What is lent ends when one gets no memory.
func TestNothingToLend(t *testing.T) {
	x := newLending(t)
	x.goOn <- errors.New("no memory")
	withoutArea(t, x.ns, 3)
	soon(t, "the end of memory that came too late", func() error {
		for x.held.Load() != 0 || x.given.Load() != 0 {
			yield()
		}
		return nil
	})
}

// A communicator of its parent's ranks asks for the end of nobody again, and hears of
// it: of who has died before it was made, and of who dies when the parent is freed.
func TestChildKnowsDeaths(t *testing.T) {
	ns := areaJob(t, 3, nil)
	asked := 0
	for _, n := range ns[:2] {
		n.ctl.mu.Lock()
		n.ctl.watch = func(m wire.Members) { asked += m.Len() }
		n.ctl.mu.Unlock()
		n.ProcFailed(proc(3), "was killed")
	}
	failed := func(n *node) int {
		n.Lock()
		defer n.Unlock()
		if n.ctx.faults == nil {
			return 0
		}
		return n.ctx.faults.failed
	}
	for serial := range uint32(2) {
		for i, n := range childAt(t, ns[:2], 0, serial, 0, 1) { // not the parent's ranks
			if k := failed(n); k != 0 {
				t.Errorf("rank %d: %d of two that live have failed", i, k)
			}
		}
		for i, n := range ns[:2] {
			c, err := n.NewContextIn(n.ctx, 0, wire.ContextID{Creator: proc(1), Serial: 10 + serial}, n.ctx.Members, nil)
			if err != nil {
				t.Fatal(err)
			}
			d := &node{n.Engine, n.ctl, c}
			if k := failed(d); k != 1 {
				t.Errorf("rank %d: %d of three have failed, of whom one has", i, k)
			}
			if serial == 0 {
				continue
			}
			n.FreeContext(n.ctx)
			n.ProcFailed(proc(2-i), "was killed")
			if k := failed(d); k != 2 {
				t.Errorf("rank %d: %d of three have failed, of whom two have", i, k)
			}
		}
	}
	if asked != 0 {
		t.Errorf("asked for the end of %d processes that was asked for", asked)
	}
}
