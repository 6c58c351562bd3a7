// SPDX-License-Identifier: Apache-2.0

package engine

// unsafe: kernels work on addresses.

import (
	"sync"
	"testing"

	"gompi/collectives"
	"gompi/internal/fault"
)

// briefly makes a brief call on all nodes at once, of which how many have made it.
func briefly(ns []*node, k func(i int) *Brief) (made []bool, faults []*fault.Fault) {
	made, faults = make([]bool, len(ns)), make([]*fault.Fault, len(ns))
	var wg sync.WaitGroup
	for i, n := range ns {
		wg.Go(func() { faults[i], made[i] = n.ctx.Brief(k(i), "Barrier", false) })
	}
	wg.Wait()
	return made, faults
}

// A call is brief if the last one of its operation that went over cells was like it, and
// nothing stands against it.
func TestBrief(t *testing.T) {
	for _, size := range []int{2, 3} {
		ns := boardJob(t, size, nil)
		barrier := func(int) *Brief {
			return &Brief{Op: collectives.OpBarrier, Unit: ns[0].call64(collectives.OpBarrier, nil, nil, 0, 0).Unit}
		}
		for round := range 100 {
			made, faults := briefly(ns, barrier)
			for i := range ns {
				if !made[i] || faults[i] != nil {
					t.Fatalf("%d ranks, round %d, rank %d: made %v, %+v", size, round, i, made[i], faults[i])
				}
			}
		}
		in, out := make([][]uint64, size), make([][]uint64, size)
		for i := range ns {
			in[i], out[i] = []uint64{uint64(i)<<32 | 1}, make([]uint64, 1)
		}
		reduce := func(i int) *Brief {
			return &Brief{Op: collectives.OpAllreduce, Count: 1, Unit: 8, In: buf64(in[i]).Flat(), Out: buf64(out[i]).Flat(), Kernel: join64}
		}
		if made, _ := briefly(ns, reduce); made[0] || made[1] {
			t.Fatalf("%d ranks: an allreduce is brief that was never made", size)
		}
		for range 2 {
			for i, f := range everywhere(t, ns, func(i int) *CollArgs { return ns[i].call64(collectives.OpAllreduce, in[i], out[i], 1, 0) }) {
				if f != nil {
					t.Fatalf("rank %d: %+v", i, f)
				}
			}
		}
		want := in[0][0]
		for _, x := range in[1:] {
			want = compose(want, x[0])
		}
		for range 10 {
			made, faults := briefly(ns, reduce)
			for i := range ns {
				if !made[i] || faults[i] != nil || out[i][0] != want {
					t.Fatalf("%d ranks, rank %d: made %v, %+v, %#x for %#x", size, i, made[i], faults[i], out[i][0], want)
				}
				out[i][0] = 0
			}
		}
		longer := func(i int) *Brief {
			k := reduce(i)
			k.Count = 2
			return k
		}
		if made, _ := briefly(ns, longer); made[0] || made[1] {
			t.Errorf("%d ranks: an allreduce of another length is brief", size)
		}
		ns[0].mu.Lock()
		ns[0].ctx.inside = &ns[0].ctx.board.req
		ns[0].mu.Unlock()
		if _, made := ns[0].ctx.Brief(barrier(0), "Barrier", false); made {
			t.Errorf("%d ranks: a call is brief in the midst of another one", size)
		}
		ns[0].mu.Lock()
		ns[0].ctx.inside = nil
		ns[0].mu.Unlock()
	}
}
