// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/rand/v2"
	"sync"
	"testing"

	"gompi/collectives"
	"gompi/internal/base/fault"
)

// oversubscribed makes a job whose ranks say that they share processors, or that they do
// not.
func oversubscribed(yes bool) func(int, *Config) {
	return func(_ int, c *Config) {
		if !yes {
			c.Policy.OS, c.Policy.PerCPU = true, 1
		}
	}
}

// Every operation on the areas of many ranks, with roots anywhere, in random
// order, with and without synchronisation.
func TestTreeOperations(t *testing.T) {
	for i, size := range []int{65, 70} {
		ns, _ := testJobOf(t, size, nil, oversubscribed(i%2 == 0))
		rnd := rand.New(rand.NewPCG(uint64(size), 2))
		type call struct {
			op          collectives.Op
			count, root int
			inPlace     bool
		}
		ops := []collectives.Op{collectives.OpBarrier, collectives.OpBcast, collectives.OpReduce, collectives.OpAllreduce,
			collectives.OpGather, collectives.OpScan, collectives.OpReduce, collectives.OpBcast}
		calls := make([]call, 36)
		for k := range calls {
			calls[k] = call{ops[rnd.IntN(len(ops))], []int{0, 1, 2, 7, 30}[rnd.IntN(5)], rnd.IntN(size), rnd.IntN(2) == 0}
			if k%3 == 1 {
				calls[k].root = 0
			}
		}
		for i := range 12 { // slots are used again though nobody waits for all
			calls[20+i] = call{[]collectives.Op{collectives.OpReduce, collectives.OpBcast}[i/6], 1, 17 * (i % 2), false}
		}
		soon(t, "program", func() error {
			var wg sync.WaitGroup
			for rank, n := range ns {
				wg.Go(func() {
					for k, c := range calls {
						in, out, want := areaCase(c.op, k, rank, size, c.count, c.root, c.inPlace)
						a := n.call64(c.op, in, out, c.count, c.root)
						a.Args.InPlace = a.In.Overlaps(a.Out)
						if k == 0 && !a.Alg.Shared {
							t.Errorf("%v does not use the area", a.Alg)
						}
						if (k+rank)%5 == 0 {
							yield() // others fall asleep
						}
						if f := n.Collective(n.ctx, a); f != nil {
							t.Errorf("call %d, %+v, rank %d of %d: %+v", k, c, rank, size, f)
							return
						}
						for i, v := range out {
							if v != want(i) {
								t.Errorf("call %d, %+v, rank %d of %d: element %d is %x, want %x", k, c, rank, size, i, v, want(i))
								return
							}
						}
					}
				})
			}
			wg.Wait()
			return nil
		})
	}
}

// What ends a collective ends it in the tree, for those far from the cause.
func TestTreeEnds(t *testing.T) {
	const size, lost = 70, 16 // which others stand under
	for name, c := range map[string]struct {
		do   func(ns []*node)
		want fault.Class
	}{
		"death": {func(ns []*node) {
			for i, n := range ns {
				if i != lost {
					n.ProcFailed(proc(1+lost), "was killed")
				}
			}
		}, fault.ProcFailed},
		"left": {func(ns []*node) {
			for i, n := range ns {
				if i != lost {
					n.ProcGone(proc(1+lost), "")
				}
			}
		}, fault.Left},
		"revoked": {func(ns []*node) { ns[lost].Revoke(ns[lost].ctx) }, fault.Revoked},
		"refused": {func(ns []*node) {
			ns[lost].Refuse(ns[lost].ctx, ns[lost].call64(collectives.OpBarrier, nil, nil, 0, 0))
		}, fault.Aborted},
	} {
		for _, central := range []bool{false, true} {
			ns := areaJob(t, size, oversubscribed(central))
			done := make(chan *fault.Fault, size)
			for i, n := range ns {
				if i != lost {
					go func() { done <- n.Collective(n.ctx, n.call64(collectives.OpBarrier, nil, nil, 0, 0)) }()
				}
			}
			ns[size-1].asleep(t)
			ns[0].asleep(t)
			go c.do(ns)
			for range size - 1 {
				wantClass(t, name, soon(t, "barrier", func() *fault.Fault { return <-done }), c.want)
			}
		}
	}
}

// A rank that has been told that it stands in the tree mismatches like others.
func TestTreeMismatch(t *testing.T) {
	for _, central := range []bool{false, true} {
		testTreeMismatch(t, central)
	}
}

func testTreeMismatch(t *testing.T, central bool) {
	ns := areaJob(t, 66, oversubscribed(central))
	for r, f := range everywhere(t, ns, func(i int) *CollArgs {
		count := 1
		if i == 40 {
			count = 2
		}
		return ns[i].call64(collectives.OpAllreduce, make([]uint64, count), make([]uint64, count), count, 0)
	}) {
		if f.Code() != fault.Mismatch && f.Code() != fault.Aborted {
			t.Errorf("rank %d: %+v", r, f)
		}
	}
}
