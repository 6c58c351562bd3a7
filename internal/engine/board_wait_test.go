// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/internal/fault"
	"gompi/internal/wait"
)

// A rank that sleeps over a board is woken, and the numbers of sleepers end at
// none.
func TestBoardSleepers(t *testing.T) {
	ns := boardJob(t, 3, nil)
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
		if n := ns[0].ctx.board.head.sleepers.Load(); n != 0 {
			t.Fatalf("%d sleepers are left", n)
		}
	}
}

// A rank that sleeps is counted as long as its mark is seen: whoever takes the mark
// of one away, and counts it down, must not hide another.
func TestBoardSleepersCount(t *testing.T) {
	mem := make([]byte, boardSize(3)+boardAlign)
	mem = mem[-uintptr(address(mem))%boardAlign:][:boardSize(3)]
	var ranks [3]*board
	for i := range ranks {
		ranks[i] = newBoard(mem, i, len(ranks))
	}
	ranks[0].doze()
	var over atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !over.Load() {
			ranks[1].doze()
		}
	})
	b := ranks[2]
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		for range 100 {
			if b.ranks[1].asleep.Load() == awake {
				continue
			}
			if n := b.head.sleepers.Load(); n < 2 {
				t.Errorf("two sleep, and %d are counted", n)
				end = time.Time{}
				break
			}
			b.rise(b.ranks[1])
		}
	}
	over.Store(true)
	wg.Wait()
}

// A root that runs ahead waits for the readers of its old publications, and
// sleeps until one of them is done.
func TestBoardRootAhead(t *testing.T) {
	ns := boardJob(t, 2, nil)
	const calls = 3 * boardSlots
	root := make(chan *fault.Fault, calls)
	go func() {
		for k := range calls {
			root <- ns[0].Collective(ns[0].ctx, ns[0].call64(collectives.OpBcast, nil, []uint64{uint64(k)}, 1, 0))
		}
	}()
	const ahead = boardSlots - 1
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
func TestBoardUntold(t *testing.T) {
	const size = 2
	ns := boardJob(t, size, func(_ int, c *Config) { c.Policy = wait.Policy{Spin: 1 << 30, Crowd: 1} })
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
			in, outs[i], want[i] = boardCase(op, k, i, size, count, root, false)
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

// A rank knows whom it waited for after an operation of all ranks, and gives way
// to them, but not for ever.
func TestBoardGivesWay(t *testing.T) {
	ns := boardJob(t, 3, func(_ int, c *Config) { c.Policy = wait.ForGoroutine() })
	run := func(op collectives.Op, root int) {
		t.Helper()
		for rank, f := range everywhere(t, ns, func(i int) *CollArgs {
			in, out, _ := boardCase(op, 1, i, len(ns), 1, root, false)
			return ns[i].call64(op, in, out, 1, root)
		}) {
			if f != nil {
				t.Fatalf("rank %d: %+v", rank, f)
			}
		}
	}
	for _, c := range []struct {
		op    collectives.Op
		root  int
		waits [3]string
	}{
		{collectives.OpBcast, 1, [3]string{"1..1", "", "1..1"}},
		{collectives.OpGather, 2, [3]string{"", "", "0..2"}},
		{collectives.OpScan, 0, [3]string{"", "0..1", "0..2"}},
		{collectives.OpExscan, 0, [3]string{"", "0..0", "0..1"}},
		{collectives.OpAllreduce, 0, [3]string{}},
	} {
		run(collectives.OpBarrier, 0)
		run(c.op, c.root)
		for rank, want := range c.waits {
			a, got := &ns[rank].ctx.board.after, ""
			if a.some {
				got = fmt.Sprintf("%d..%d", a.lo, a.hi)
			}
			if got != want {
				t.Errorf("%v: rank %d gives way to %q, want %q", c.op, rank, got, want)
			}
		}
	}
	run(collectives.OpBarrier, 0)
	run(collectives.OpBcast, 0)
	run(collectives.OpBarrier, 0) // returns before anybody comes to a bcast
}
