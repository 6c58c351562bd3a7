// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/internal/base/fault"
)

// nodeJob is a job of which rank r is on host hosts[r], and has made calls.
func nodeJob(t testing.TB, hosts ...uint32) (ns []*node, nodes *collectives.Nodes) {
	t.Helper()
	ns, _ = testJobOf(t, len(hosts), nil, nil)
	nodes = collectives.NewNodes(hosts)
	for r, n := range ns {
		if err := n.Divide(n.ctx, nodes.Ranks(nodes.Of(r))); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		for r, f := range everywhere(t, ns, func(i int) *CollArgs { return ns[i].staged64(nodes, collectives.OpBarrier, nil, nil, 0, 0) }) {
			if f != nil {
				t.Fatalf("rank %d: %+v", r, f)
			}
		}
	}
	for r, n := range ns {
		if several := len(nodes.Ranks(nodes.Of(r))) > 1; several != (n.ctx.host != nil && n.ctx.host.ctx.area != nil) {
			t.Fatalf("rank %d: area is not %v", r, several)
		}
	}
	return ns, nodes
}

// staged64 is call64 by a two-level algorithm.
func (n *node) staged64(nodes *collectives.Nodes, op collectives.Op, in, out []uint64, count, root int) *CollArgs {
	a := n.call64(op, in, out, count, root)
	a.Args.Nodes, a.Args.Shared, a.Args.Reads, a.Args.InPlace = nodes, 0, false, a.In.Overlaps(a.Out)
	a.Alg = a.Table.Select(&a.Args, 8, false)
	return a
}

// Stages over areas give what the operation says, with any division of the ranks,
// between calls by messages and after calls that were refused.
func TestNodeStages(t *testing.T) {
	for _, hosts := range [][]uint32{{0, 0, 1}, {0, 0, 0, 1, 1}, {0, 0, 1, 2, 2, 2}, {0, 1, 0, 1, 1}} {
		t.Run(fmt.Sprint(hosts), func(t *testing.T) {
			ns, nodes := nodeJob(t, hosts...)
			direct, err := selection.ByName(collectives.OpBarrier, "direct")
			if err != nil {
				t.Fatal(err)
			}
			call := 0
			for _, op := range []collectives.Op{collectives.OpBcast, collectives.OpAllreduce, collectives.OpReduce, collectives.OpGather, collectives.OpAllgather} {
				if op.Reduces() && !nodes.Contiguous() {
					continue // join64 does not commute
				}
				for _, count := range []int{0, 1, 20, 200} {
					for root := range hosts {
						call++
						if call%5 == 0 {
							everywhere(t, ns, func(i int) *CollArgs {
								a := ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0)
								a.Alg = direct
								return a
							})
						}
						outs, wants := make([][]uint64, len(ns)), make([]func(int) uint64, len(ns))
						for r, f := range everywhere(t, ns, func(i int) *CollArgs {
							var in []uint64
							in, outs[i], wants[i] = areaCase(op, call, i, len(ns), count, root, call%2 == 0)
							return ns[i].staged64(nodes, op, in, outs[i], count, root)
						}) {
							if f != nil {
								t.Fatalf("%v of rank %d: %+v", op, r, f)
							}
							for i, v := range outs[r] {
								if v != wants[r](i) {
									t.Fatalf("%v of %d from %d, rank %d, element %d is %x, want %x", op, count, root, r, i, v, wants[r](i))
								}
							}
						}
					}
				}
			}
			free(ns...)
			for r, n := range ns {
				if len(n.contexts) != 0 || len(n.heaps) != 0 {
					t.Errorf("rank %d has %d contexts and %d heaps at the end", r, len(n.contexts), len(n.heaps))
				}
			}
		})
	}
}

// What ends a call ends it on all ranks, in whichever stage they wait: on the area
// for a rank of the node, for another node, or for the head.
func TestNodeStagesEnd(t *testing.T) {
	for _, missing := range []int{0, 1, 3, 4} { // head and not of two nodes of three and two
		for name, end := range map[string]struct {
			do   func(ns []*node, missing int)
			want []fault.Class
		}{
			"refused": {func(ns []*node, m int) {
				ns[m].Refuse(ns[m].ctx, ns[m].call64(collectives.OpBarrier, nil, nil, 0, 0))
			}, []fault.Class{fault.Aborted}},
			"death": {func(ns []*node, m int) {
				for r, n := range ns {
					if r != m {
						n.ProcFailed(proc(m+1), "was killed")
					}
				}
			}, []fault.Class{fault.ProcFailed}},
			"revoked": {func(ns []*node, m int) { ns[m].Revoke(ns[m].ctx) }, []fault.Class{fault.Revoked}},
			"left": {func(ns []*node, m int) {
				for r, n := range ns {
					if r != m {
						n.ProcGone(proc(m+1), "")
					}
				}
			}, []fault.Class{fault.Left}},
			"another call": {func(ns []*node, m int) {
				go func() {
					a := ns[m].call64(collectives.OpBarrier, nil, nil, 0, 0)
					a.Alg, _ = selection.ByName(collectives.OpBarrier, "dissemination")
					ns[m].Collective(ns[m].ctx, a)
				}()
			}, []fault.Class{fault.Mismatch, fault.Aborted}},
		} {
			t.Run(fmt.Sprint(name, missing), func(t *testing.T) {
				ns, nodes := nodeJob(t, 0, 0, 0, 1, 1)
				done := make([]chan *fault.Fault, len(ns))
				for r, n := range ns {
					if r == missing {
						continue
					}
					done[r] = make(chan *fault.Fault, 1)
					go func() {
						done[r] <- n.Collective(n.ctx, n.staged64(nodes, collectives.OpAllreduce, []uint64{1}, []uint64{0}, 1, 0))
					}()
				}
				for r, n := range ns {
					if r != missing {
						n.asleep(t)
					}
				}
				end.do(ns, missing)
				for r := range ns {
					if r == missing {
						continue
					}
					f := soon(t, "the call", func() *fault.Fault { return <-done[r] })
					if !slices.Contains(end.want, f.Code()) {
						t.Errorf("rank %d: class %d, want %d (%+v)", r, f.Code(), end.want, f)
					}
					if f.Code() == fault.ProcFailed && f.Peer != int32(missing) {
						t.Errorf("rank %d: rank %d has died, not %d", r, f.Peer, missing)
					}
				}
				if name != "refused" {
					return
				}
				for r, f := range everywhere(t, ns, func(i int) *CollArgs {
					return ns[i].staged64(nodes, collectives.OpBarrier, nil, nil, 0, 0)
				}) {
					if f != nil {
						t.Errorf("rank %d, afterwards: %+v", r, f)
					}
				}
			})
		}
	}
	t.Run("cancelled", func(t *testing.T) {
		ns, nodes := nodeJob(t, 0, 0, 1, 1)
		ctx, cancel := context.WithCancel(context.Background())
		done := make([]chan *fault.Fault, 3)
		for r, n := range ns[:3] {
			done[r] = make(chan *fault.Fault, 1)
			go func() {
				a := n.staged64(nodes, collectives.OpBarrier, nil, nil, 0, 0)
				if r == 1 {
					a.User = ctx
				}
				done[r] <- n.Collective(n.ctx, a)
			}()
		}
		for _, n := range ns[:3] {
			n.asleep(t)
		}
		cancel()
		for r, want := range []fault.Class{fault.Revoked, fault.Cancelled, fault.Revoked} {
			wantClass(t, fmt.Sprint("rank ", r), soon(t, "the call", func() *fault.Fault { return <-done[r] }), want)
		}
	})
}

// A second goroutine in a call is told of the first, whatever part that is in; the
// registry shows the communicator.
func TestNodeStagesOverlap(t *testing.T) {
	ns, nodes := nodeJob(t, 0, 0, 1)
	for r, n := range ns[:2] {
		done := make(chan *fault.Fault, 1)
		go func() { done <- n.Collective(n.ctx, n.staged64(nodes, collectives.OpBarrier, nil, nil, 0, 0)) }()
		n.asleep(t)
		wantClass(t, "the second", soon(t, "the second", func() *fault.Fault {
			return n.Collective(n.ctx, n.staged64(nodes, collectives.OpBarrier, nil, nil, 0, 0))
		}), fault.Overlap)
		n.Lock()
		en := n.entry("Barrier", n.ctx.host.ctx, -1, -1, 0)
		n.Unlock()
		if en.Comm != n.ctx.ID || en.CommSize != 3 || en.Rank != r {
			t.Errorf("rank %d is shown as %+v", r, en)
		}
		if r == 1 {
			ns[2].Revoke(ns[2].ctx)
			wantClass(t, "the first", soon(t, "the first", func() *fault.Fault { return <-done }), fault.Revoked)
		}
	}
}
