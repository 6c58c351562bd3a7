// SPDX-License-Identifier: Apache-2.0

package engine

// unsafe: kernels work on addresses.

import (
	"sync"
	"sync/atomic"
	"testing"

	"gompi/collectives"
	"gompi/internal/base/fault"
)

// briefly makes a call on all nodes at once, the brief way where that can be, and returns on
// how many it was. A node whose lock is held for a moment takes the other way.
func briefly(t *testing.T, ns []*node, k func(i int) *FastColl, long func(i int) *CollArgs) (made int64) {
	t.Helper()
	var count atomic.Int64
	faults := make([]*fault.Fault, len(ns))
	var wg sync.WaitGroup
	for i, n := range ns {
		wg.Go(func() {
			a := long(i)
			f, made := n.ctx.FastColl(k(i), a.Op, a.Commutative)
			if made {
				count.Add(1)
			} else {
				f = n.Collective(n.ctx, a)
			}
			faults[i] = f
		})
	}
	wg.Wait()
	for i, f := range faults {
		if f != nil {
			t.Fatalf("rank %d of %d: %+v", i, len(ns), f)
		}
	}
	return count.Load()
}

// A call is brief if the last one of its operation that went over cells was like it, and
// nothing forbids it.
func TestBrief(t *testing.T) {
	for _, size := range []int{2, 3} {
		ns := areaJob(t, size, nil)
		barrier := func(i int) *CollArgs { return ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0) }
		briefBarrier := func(i int) *FastColl { return &FastColl{Op: collectives.OpBarrier, Unit: barrier(i).Unit} }
		made := int64(0)
		for range 200 {
			made += briefly(t, ns, briefBarrier, barrier)
		}
		if made < int64(100*size) {
			t.Errorf("%d of %d barriers of %d ranks were brief", made, 200*size, size)
		}
		in, out := make([][]uint64, size), make([][]uint64, size)
		want := uint64(1 << 32)
		for i := range ns {
			in[i], out[i] = []uint64{uint64(i+2)<<32 | 1, 7}, make([]uint64, 2)
			if want = compose(want, in[i][0]); i == 0 {
				want = in[0][0]
			}
		}
		count := 1
		reduce := func(i int) *CollArgs {
			return ns[i].call64(collectives.OpAllreduce, in[i][:count], out[i][:count], count, 0)
		}
		briefReduce := func(i int) *FastColl {
			a := reduce(i)
			return &FastColl{Op: collectives.OpAllreduce, Count: a.Args.Count, Unit: a.Unit, In: a.In.Flat(), Out: a.Out.Flat(), Kernel: a.Kernel}
		}
		if made := briefly(t, ns, briefReduce, reduce); made > 0 {
			t.Fatalf("%d ranks: an allreduce is brief that was never made", size)
		}
		made = 0
		for range 200 {
			made += briefly(t, ns, briefReduce, reduce)
			for i := range ns {
				if out[i][0] != want {
					t.Fatalf("%d ranks, rank %d: %#x for %#x", size, i, out[i][0], want)
				}
				out[i][0] = 0
			}
		}
		if made < int64(100*size) {
			t.Errorf("%d of %d allreduces of %d ranks were brief", made, 200*size, size)
		}
		count = 2
		if made := briefly(t, ns, briefReduce, reduce); made > 0 {
			t.Errorf("%d ranks: an allreduce of another length is brief", size)
		}
		ns[0].mu.Lock()
		ns[0].ctx.blocking = &ns[0].ctx.area.req
		ns[0].mu.Unlock()
		if _, made := ns[0].ctx.FastColl(briefBarrier(0), "Barrier", barrier(0).Commutative); made {
			t.Errorf("%d ranks: a call is brief in the midst of another one", size)
		}
		ns[0].mu.Lock()
		ns[0].ctx.blocking = nil
		ns[0].mu.Unlock()
		ns[0].ctx.ForgetFastColl()
		if _, made := ns[0].ctx.FastColl(briefBarrier(0), "Barrier", barrier(0).Commutative); made {
			t.Errorf("%d ranks: a call is brief that was forgotten", size)
		}
	}
}
