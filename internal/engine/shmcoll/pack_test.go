// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"testing"

	"gompi/collectives"
	"gompi/internal/control/collmem"
	"gompi/internal/data/buffer"
)

// unread is the memory of a rank that nobody reads.
type unread struct{ nowhere }

func (unread) Register([]byte) uint64 { return 1 }
func (unread) Unregister(uint64)      {}

// Whatever packs for others to read does so a piece at a step, because its caller holds a
// lock, and packs what others take, not all that its buffer holds.
func TestPacksInPieces(t *testing.T) {
	const size, words = 3, 5 * packPiece / 8 // of a block
	calls := []struct {
		op      collectives.Op
		inPlace bool
		steps   int // at least
		bytes   int // of memory to pack into
	}{
		{collectives.OpBcast, false, 5, 8 * words},
		{collectives.OpScatter, false, 15, 3 * 8 * words},
		{collectives.OpAllgather, false, 5, 8 * words},
		{collectives.OpAlltoall, false, 15, 3 * 8 * words},
		{collectives.OpAlltoall, true, 15, 3 * 8 * words},
		{collectives.OpAllreduce, false, 5, 8 * words},
		{collectives.OpScan, false, 5, 8 * words},
		{collectives.OpScatterv, false, 10, 2 * 8 * words},
		{collectives.OpAlltoallv, false, 10, 2 * 8 * words},
		{collectives.OpAlltoallv, true, 10, 2 * 8 * words},
		{collectives.OpNeighborAllgather, false, 5, 8 * words},
		{collectives.OpNeighborAlltoallv, false, 10, 2 * 8 * words},
	}
	for _, x := range calls {
		b := new(Area)
		b.Open(make([]byte, collmem.Size(size)), 0, size, nil)
		b.regions = unread{}
		blocks := 1
		a := Call{Unit: 8, Args: collectives.Args{Op: x.op, Size: size, Count: words, InPlace: x.inPlace}}
		lists := func() (counts, displs []int64) { // three blocks among nine
			return []int64{words, words, words}, []int64{words, 4 * words, 7 * words}
		}
		switch x.op {
		case collectives.OpScatter, collectives.OpAlltoall:
			blocks = size
		case collectives.OpScatterv:
			blocks = 9
			a.Args.Counts, a.Args.Displs = lists()
		case collectives.OpAlltoallv, collectives.OpNeighborAlltoallv:
			blocks = 9
			a.Args.InCounts, a.Args.InDispls = lists()
			a.Args.OutCounts, a.Args.OutDispls = lists()
			fallthrough
		case collectives.OpNeighborAllgather:
			if x.op != collectives.OpAlltoallv {
				a.Args.Dests, a.Args.Sources = []int32{0, 1, 2}, []int32{0, 1, 2}
				_, a.Args.OutDispls = lists()
			}
		case collectives.OpAllreduce, collectives.OpScan:
			a.Kernel = add64
		}
		_, a.In = spread64(blocks * words)
		a.Out = buffer.Of(make([]byte, 9*8*words))
		if x.inPlace {
			plain := buffer.Of(make([]byte, blocks*8*words))
			a.In, a.Out = plain, plain
		}
		switch x.op {
		case collectives.OpBcast:
			a.In, a.Out = buffer.Buf{}, a.In
		case collectives.OpScatter, collectives.OpScatterv, collectives.OpAllreduce, collectives.OpScan:
			a.Out = a.Out.Part(0, 8*words)
		}
		b.Begin(&a, 1, true, false)
		steps := 0
		for published := false; !published; steps++ {
			if at := b.packing.at; b.Step() || b.Fault() != nil || steps > 100 {
				t.Fatalf("%v, in place %v: step %d ends it, %+v", x.op, x.inPlace, steps, b.Fault())
			} else if b.packing.at > at+packPiece {
				t.Fatalf("%v, in place %v: step %d packs %d bytes", x.op, x.inPlace, steps, b.packing.at-at)
			}
			published = b.posted(0, 1)
			if !published && !b.Moved() {
				t.Fatalf("%v, in place %v: step %d has nothing to do", x.op, x.inPlace, steps)
			}
		}
		if steps < x.steps {
			t.Errorf("%v, in place %v: %d steps, want %d at least", x.op, x.inPlace, steps, x.steps)
		}
		if got := int64(cap(b.packedIn)); got != int64(x.bytes) {
			t.Errorf("%v, in place %v: %d bytes to pack into, want %d", x.op, x.inPlace, got, x.bytes)
		}
		b.End(true)
	}
}
