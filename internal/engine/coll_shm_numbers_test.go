// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/engine/shmcoll"
)

// A rank that refuses calls, or hears before that they were given up, is done
// with what was published for them.
func TestAreaLateRefusals(t *testing.T) {
	ns := areaJob(t, 3, nil)
	bcast := func(i int) *CollArgs { return ns[i].call64(collectives.OpBcast, nil, make([]uint64, 1), 1, 0) }
	for refusals := range shmcoll.Cells + 1 {
		for _, n := range ns[1:] { // as they do when they wait
			n.mu.Lock()
			n.ctx.area.Tell()
			n.mu.Unlock()
		}
		for range refusals {
			if f := soon(t, "the root", func() *fault.Fault { return ns[0].Collective(ns[0].ctx, bcast(0)) }); f != nil {
				t.Fatalf("the root, after %d refusals: %+v", refusals, f)
			}
		}
		for range refusals {
			ns[2].Refuse(ns[2].ctx, bcast(2))
			if f := soon(t, "rank 1", func() *fault.Fault { return ns[1].Collective(ns[1].ctx, bcast(1)) }); f != nil && f.Class != fault.Aborted {
				t.Fatalf("rank 1: %+v", f)
			}
		}
		for r, f := range everywhere(t, ns, bcast) {
			if f != nil {
				t.Fatalf("rank %d, after %d refusals: %+v", r, refusals, f)
			}
		}
	}
}

// pass lets the numbers of all ranks go on to where what stands on the area is
// renewed, as if so many calls had gone by messages, and makes a barrier there.
func pass(t *testing.T, ns []*node) {
	t.Helper()
	for _, n := range ns {
		n.mu.Lock()
		n.ctx.collSeq = n.ctx.collSeq/shmcoll.RenewEvery*shmcoll.RenewEvery + shmcoll.RenewEvery - 1
		n.mu.Unlock()
	}
	for r, f := range everywhere(t, ns, func(i int) *CollArgs { return ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0) }) {
		if f != nil {
			t.Fatalf("rank %d: %+v", r, f)
		}
	}
}

// However many calls there have been, a root waits for those who read, and
// nobody takes an old cell for one of now.
func TestAreaNumbersWrap(t *testing.T) {
	ns := areaJob(t, 2, nil)
	value := uint64(0)
	bcast := func(root int) {
		t.Helper()
		// The reader first: only what is published now may come.
		out, f := make([]uint64, 1), make(chan *fault.Fault, 2)
		go func() {
			f <- ns[1-root].Collective(ns[1-root].ctx, ns[1-root].call64(collectives.OpBcast, nil, out, 1, root))
		}()
		ns[1-root].asleep(t)
		value++
		go func() {
			f <- ns[root].Collective(ns[root].ctx, ns[root].call64(collectives.OpBcast, nil, []uint64{value}, 1, root))
		}()
		for range ns {
			if f := soon(t, "bcast", func() *fault.Fault { return <-f }); f != nil {
				t.Fatalf("%+v", f)
			}
		}
		if out[0] != value {
			t.Fatalf("call %#x: got %d, want %d", ns[0].ctx.collSeq, out[0], value)
		}
	}
	ahead := func() {
		t.Helper()
		const calls = 3 * shmcoll.Cells
		root := make(chan *fault.Fault, calls)
		go func() {
			for k := range calls {
				root <- ns[0].Collective(ns[0].ctx, ns[0].call64(collectives.OpBcast, nil, []uint64{uint64(k)}, 1, 0))
			}
		}()
		ns[0].asleep(t)
		for k := range calls {
			out := make([]uint64, 1)
			if f := soon(t, "bcast", func() *fault.Fault {
				return ns[1].Collective(ns[1].ctx, ns[1].call64(collectives.OpBcast, nil, out, 1, 0))
			}); f != nil || out[0] != uint64(k) {
				t.Fatalf("call %#x, bcast %d gives %d, %+v", ns[1].ctx.collSeq, k, out[0], f)
			}
		}
		for range calls {
			if f := soon(t, "the root", func() *fault.Fault { return <-root }); f != nil {
				t.Fatalf("%+v", f)
			}
		}
	}
	for k := range 2*(persistBit/shmcoll.RenewEvery) + 1 {
		pass(t, ns)
		if k%(persistBit/shmcoll.RenewEvery) == 0 {
			// The same number as one whole turn before.
			bcast(1)
			bcast(0)
		}
		if k%3 == 0 {
			ahead()
		}
	}
}
