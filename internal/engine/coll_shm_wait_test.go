// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/rand/v2"
	"testing"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/internal/base/fault"
	"gompi/internal/engine/shmcoll"
	"gompi/internal/host/wait"
)

// A rank that sleeps over an area is woken, and the numbers of sleepers end at
// none.
func TestAreaSleepers(t *testing.T) {
	ns := areaJob(t, 3, nil)
	for round := range 6 {
		late := round % 3
		done := make(chan *fault.Fault, len(ns))
		call := func(i int) {
			done <- ns[i].Collective(ns[i].ctx, ns[i].call64(collectives.OpAllreduce, make([]uint64, 1), make([]uint64, 1), 1, 0))
		}
		for i := range ns {
			if i != late {
				go call(i)
			}
		}
		for i := range ns {
			if i != late {
				ns[i].asleep(t)
			}
		}
		go call(late)
		for range ns {
			if f := soon(t, "allreduce", func() *fault.Fault { return <-done }); f != nil {
				t.Fatal(f)
			}
		}
		if n := ns[0].ctx.area.Sleepers(); n != 0 {
			t.Fatalf("%d sleepers are left", n)
		}
	}
}

// A root that runs ahead waits for the readers of its old cells, and
// sleeps until one of them is done.
func TestAreaRootAhead(t *testing.T) {
	ns := areaJob(t, 2, nil)
	const calls = 3 * shmcoll.Cells
	root := make(chan *fault.Fault, calls)
	go func() {
		for k := range calls {
			root <- ns[0].Collective(ns[0].ctx, ns[0].call64(collectives.OpBcast, nil, []uint64{uint64(k)}, 1, 0))
		}
	}()
	const ahead = shmcoll.Cells - 1
	for range ahead {
		if f := soon(t, "bcast", func() *fault.Fault { return <-root }); f != nil {
			t.Fatal(f)
		}
	}
	ns[0].asleep(t)
	for k := range calls {
		out := make([]uint64, 1)
		if f := ns[1].Collective(ns[1].ctx, ns[1].call64(collectives.OpBcast, nil, out, 1, 0)); f != nil || out[0] != uint64(k) {
			t.Fatalf("bcast %d gives %d, %+v", k, out[0], f)
		}
	}
	for range calls - ahead {
		if f := soon(t, "bcast", func() *fault.Fault { return <-root }); f != nil {
			t.Fatal(f)
		}
	}
}

// What a rank has not told yet holds nobody up who is at the same call, also if
// no rank ever waits long enough to tell all.
func TestAreaUntold(t *testing.T) {
	const size = 2
	ns := areaJob(t, size, func(_ int, c *Config) { c.Policy = wait.Policy{Spin: 1 << 30, PerCPU: 1} })
	direct, err := selection.ByName(collectives.OpBarrier, "direct")
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(7, 7))
	ops := []collectives.Op{collectives.OpBcast, collectives.OpScatter, collectives.OpScan, collectives.OpExscan,
		collectives.OpGather, collectives.OpReduce, collectives.OpAllreduce}
	for k := range 400 {
		for range rnd.IntN(3) { // numbers are used up
			everywhere(t, ns, func(i int) *CollArgs {
				a := ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0)
				a.Alg = direct
				return a
			})
		}
		op, root, count := ops[rnd.IntN(len(ops))], rnd.IntN(size), []int{1, 6, 7, 8, 100}[rnd.IntN(5)]
		outs := make([][]uint64, size)
		var want [size]func(i int) uint64
		faults := everywhere(t, ns, func(i int) *CollArgs {
			var in []uint64
			in, outs[i], want[i] = areaCase(op, k, i, size, count, root, false)
			return ns[i].call64(op, in, outs[i], count, root)
		})
		for rank, f := range faults {
			if f != nil {
				t.Fatalf("call %d, %v, rank %d: %+v", k, op, rank, f)
			}
			for i, v := range outs[rank] {
				if v != want[rank](i) {
					t.Fatalf("call %d, %v, rank %d: element %d is %x, want %x", k, op, rank, i, v, want[rank](i))
				}
			}
		}
	}
}
