// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/internal/control/collmem"
	"gompi/internal/engine/shmcoll"
)

// BenchmarkAreaAlone is what a collective on an area costs besides the other
// ranks: the area of a single one.
func BenchmarkAreaAlone(b *testing.B) {
	ns, _ := testJobOf(b, 1, nil, nil)
	n := ns[0]
	n.ctx.area = newArea(make([]byte, collmem.Size(1)), n.ctx)
	n.ctx.areaState, n.ctx.readState = areaMade, readsKnown
	defer func() { n.ctx.area, n.ctx.areaState = nil, areaUndecided }() // it lies in no heap
	n.ctx.room.Store(int64(shmcoll.SharedRoom(1)))
	in, out := make([]uint64, 1), make([]uint64, 1)
	for _, op := range []collectives.Op{collectives.OpBarrier, collectives.OpAllreduce, collectives.OpBcast} {
		b.Run(op.String(), func(b *testing.B) {
			a := n.call64(op, in, out, 1, 0)
			a.Alg, _ = selection.ByName(op, "shared")
			b.ReportAllocs()
			for b.Loop() {
				n.Collective(n.ctx, a)
			}
		})
		b.Run("brief "+op.String(), func(b *testing.B) {
			a := n.call64(op, in, out, 1, 0)
			k := FastColl{Op: op, Unit: a.Unit, Count: a.Args.Count, In: a.In.Flat(), Out: a.Out.Flat(), Kernel: a.Kernel}
			b.ReportAllocs()
			for b.Loop() {
				if f, made := n.ctx.FastColl(&k, "", a.Commutative); f != nil {
					b.Fatalf("%+v", f)
				} else if !made { // somebody else had the lock
					n.Collective(n.ctx, a)
				}
			}
		})
	}
}
