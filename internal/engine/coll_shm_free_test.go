// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"testing"

	"gompi/collectives"
	"gompi/internal/base/fault"
)

// A communicator that is freed while another goroutine blocks in a collective
// ends with that.
func TestFreeUnderBlockingCollective(t *testing.T) {
	for _, area := range []bool{false, true} {
		t.Run(fmt.Sprintf("area=%v", area), func(t *testing.T) {
			ns, _ := testJobOf(t, 2, nil, nil)
			if area {
				warmArea(t, ns)
			}
			done := make(chan *fault.Fault, 1)
			barrier := func(n *node) *fault.Fault {
				return n.Collective(n.ctx, n.call64(collectives.OpBarrier, nil, nil, 0, 0))
			}
			go func() { done <- barrier(ns[0]) }()
			ns[0].asleep(t)
			ns[0].FreeContext(ns[0].ctx)
			for _, f := range []*fault.Fault{
				soon(t, "barrier", func() *fault.Fault { return barrier(ns[1]) }),
				soon(t, "barrier", func() *fault.Fault { return <-done }),
			} {
				if f != nil {
					t.Fatalf("%+v", f)
				}
			}
			ns[0].gone(t)
		})
	}
}

// gathervOf64 is a Gatherv over the area of so many words a rank to rank 0.
func (n *node) gathervOf64(words []int64) (a *CollArgs, out []uint64) {
	rank := n.ctx.Rank
	in := make([]uint64, words[rank])
	for i := range in {
		in[i] = word64(1, rank, i)
	}
	a = n.call64(collectives.OpBarrier, in, nil, len(in), 0)
	a.Args.Op, a.Alg = collectives.OpGatherv, algorithm(collectives.OpGatherv, "read")
	if rank == 0 {
		displs, at := make([]int64, len(words)), int64(0)
		for r, w := range words {
			displs[r], at = at, at+w
		}
		out = make([]uint64, at)
		a.Args.Counts, a.Args.Displs, a.Out = words, displs, buf64(out)
	}
	return a, out
}

// The two parts of a Gatherv of long blocks are one call, also if its
// communicator is freed between them.
func TestFreeUnderGatherv(t *testing.T) {
	words := []int64{3, 60_000}
	for freed := range words {
		ns := areaJob(t, 2, nil)
		out := make(chan []uint64, 2)
		call := func(i int) {
			a, got := ns[i].gathervOf64(words)
			if f := ns[i].Collective(ns[i].ctx, a); f != nil {
				t.Errorf("rank %d: %+v", i, f)
			}
			out <- got
		}
		go call(freed)
		ns[freed].asleep(t)
		ns[freed].FreeContext(ns[freed].ctx)
		go call(1 - freed)
		for range ns {
			got := soon(t, "gatherv", func() []uint64 { return <-out })
			for i := range got {
				if r := min(i/3, 1); got[i] != word64(1, r, i-3*r) {
					t.Fatalf("word %d is %x", i, got[i])
				}
			}
		}
		ns[freed].gone(t)
	}
}

// A rank that gives up between the parts of a call here is heard.
func TestGivenUpBetweenParts(t *testing.T) {
	ns := areaJob(t, 2, nil)
	n, c := ns[0].Engine, ns[0].ctx
	n.mu.Lock()
	defer n.mu.Unlock()
	c.tag, c.givenUp, c.blocking = c.collTag(0), nil, &c.area.req
	if !n.giveUp(c, c.tag, &fault.Fault{Class: fault.Aborted, Peer: 1}) {
		t.Error("nobody has heard of it")
	}
	a, _ := ns[0].gathervOf64([]int64{1, 1})
	wantClass(t, "the second part", n.goOn(c, a), fault.Aborted)
	c.blocking = nil
}
