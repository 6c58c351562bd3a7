// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"testing"

	"gompi/collectives"
	"gompi/collectives/selection"
)

// laidOut gives the blocks of a buffer with displacements; ok is false for
// other buffers.
func laidOut(a *collectives.Args, buf collectives.Buffer) (counts, displs []int64, ok bool) {
	switch a.Op {
	case collectives.OpAllgatherv, collectives.OpGatherv:
		return a.Counts, a.Displs, buf == collectives.Out && a.Displs != nil
	case collectives.OpScatterv:
		return a.Counts, a.Displs, buf == collectives.In && a.Displs != nil
	case collectives.OpAlltoallv, collectives.OpNeighborAllgatherv, collectives.OpNeighborAlltoallv:
		if buf == collectives.In && !a.InPlace {
			return a.InCounts, a.InDispls, a.InDispls != nil
		}
		return a.OutCounts, a.OutDispls, buf != collectives.Scratch
	}
	return nil, nil, false
}

// Displacements move blocks and change nothing else, however large they are:
// no reference crosses blocks, and no length or scratch depends on them.
func TestHugeDisplacements(t *testing.T) {
	const far = 1 << 50
	hugely := func(rank int, counts []int64) []int64 {
		displs := apart(rank, counts)
		for i := range displs {
			displs[i] += int64(i+1) * far
		}
		return displs
	}
	for _, g := range selection.All() {
		if g.Inter {
			continue
		}
		checked := false
		for _, size := range []int{1, 2, 5, 8} {
			if g.PowerOfTwo && size&(size-1) != 0 {
				continue
			}
			sweep(g, size, func(c Case) error {
				c.Layout = apart
				huge := c
				huge.Layout = hugely
				for r := range size {
					near, away := c.args(g.Op, r), huge.args(g.Op, r)
					if g.Scratch(&near) != g.Scratch(&away) || g.Sent(&near) != g.Sent(&away) || g.Rounds(&near) != g.Rounds(&away) {
						t.Fatalf("%v: %v: costs depend on displacements", g, c)
					}
					for round := range g.Rounds(&near) {
						want, got := g.Round(&near, round, nil), g.Round(&away, round, nil)
						for i := range want {
							for _, ref := range []*collectives.Ref{&want[i].A, &want[i].B} {
								checked = shift(t, &near, ref, far) || checked
							}
						}
						for i := range max(len(want), len(got)) {
							if want[i] != got[i] {
								t.Fatalf("%v: %v: %v, want %v", g, c, got[i], want[i])
							}
						}
					}
				}
				return nil
			})
		}
		c := example(g)
		a := c.args(g.Op, c.Root)
		_, _, in := laidOut(&a, collectives.In)
		_, _, out := laidOut(&a, collectives.Out)
		if (in || out) && !checked {
			t.Errorf("%v: no reference to a block", g)
		}
	}
}

// shift moves a reference as far as its block, and reports whether it is to
// one.
func shift(t *testing.T, a *collectives.Args, r *collectives.Ref, far int64) bool {
	counts, displs, ok := laidOut(a, r.Buf)
	if !ok || r.Len == 0 {
		return false
	}
	for i, n := range counts {
		if r.Off >= displs[i] && r.Off+r.Len <= displs[i]+n {
			r.Off += int64(i+1) * far
			return true
		}
	}
	t.Fatalf("%v: rank %d: %v is in no block", a.Op, a.Rank, r)
	return false
}
