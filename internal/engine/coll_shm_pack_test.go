// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"testing"

	"gompi/collectives"
	"gompi/internal/control/callreg"
	"gompi/internal/engine/progress"
	"gompi/transport"
)

// watchedCopies tells when a rank lets others read memory.
type watchedCopies struct {
	transport.SingleCopy
	registered func(buf []byte)
}

func (w watchedCopies) Register(buf []byte) uint64 {
	w.registered(buf)
	return w.SingleCopy.Register(buf)
}

// A call that packs for long is in the registry before it has packed all: with and without
// a context, whose calls wait in different ways. Elements overlap: the buffer is one block.
func TestLongPacking(t *testing.T) {
	const block = 1 << 16                                             // uint64s
	const many = (progress.LongMoves + 64) * (64 << 10) / (8 * block) // blocks, in pieces of 64 KiB
	mem := make([]byte, callreg.Bytes)
	book, err := callreg.Open(mem)
	if err != nil {
		t.Fatal(err)
	}
	ns := areaJob(t, 2, func(i int, c *Config) {
		if i == 0 {
			c.Book = book
		}
	})
	// The decision on reading comes with the first call that reads.
	call := func(i, edges int, user context.Context) (*CollArgs, []uint64) {
		n := ns[i]
		out := make([]uint64, 0)
		a := n.call64(collectives.OpBarrier, nil, nil, 0, 0)
		x := &a.Args
		x.Op, x.InCounts, x.InDispls, x.OutCounts, x.OutDispls = collectives.OpNeighborAlltoallv, nil, nil, nil, nil
		a.Op, a.Alg, a.User = "NeighborAlltoallv", algorithm(x.Op, "read"), user
		for k := range edges {
			if i == 0 {
				x.Dests, x.InCounts, x.InDispls = append(x.Dests, 1), append(x.InCounts, block), append(x.InDispls, 0)
			} else {
				x.Sources, x.OutCounts, x.OutDispls = append(x.Sources, 0), append(x.OutCounts, block), append(x.OutDispls, int64(k)*block)
			}
		}
		if i == 0 {
			in := make([]uint64, block)
			for k := range in {
				in[k] = word64(1, 0, k)
			}
			_, a.In = spread(t, in)
		} else {
			out = make([]uint64, edges*block)
			a.Out = buf64(out)
		}
		return a, out
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, user := range []context.Context{nil, ctx} {
		for _, edges := range []int{1, many} {
			var shown []callreg.Entry
			b := ns[0].ctx.area
			was := b.regions.singleCopy
			if was != nil {
				b.regions.singleCopy = watchedCopies{was, func(buf []byte) {
					if len(buf) == 8*block*edges {
						shown = callreg.Read(mem)
					}
				}}
			}
			var out []uint64
			for r, f := range everywhere(t, ns, func(i int) *CollArgs {
				a, o := call(i, edges, user)
				if i == 1 {
					out = o
				}
				return a
			}) {
				if f != nil {
					t.Fatalf("rank %d: %+v", r, f)
				}
			}
			if was != nil {
				b.regions.singleCopy = was
			}
			for i, v := range out {
				if v != word64(1, 0, i%block) {
					t.Fatalf("element %d is %x", i, v)
				}
			}
			if edges == 1 {
				continue
			}
			if len(shown) != 1 || shown[0].Op != "NeighborAlltoallv" {
				t.Errorf("with a context %v: packing ends, and the registry has %+v", user != nil, shown)
			}
			if left := callreg.Read(mem); len(left) != 0 {
				t.Errorf("a call that has ended is in the registry: %+v", left)
			}
		}
	}
}
