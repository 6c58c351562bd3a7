// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"fmt"
	"slices"
	"testing"

	"gompi/collectives"
)

// Each rank but 0 stands under one that has it below, the ranks under one follow
// it, and none has to do with many.
func TestTree(t *testing.T) {
	for _, size := range []int{1, 2, 16, 17, 65, 255, 256, 257, 1000, 2048, 4097, 5000} {
		under := make([]int, size)
		for r := size - 1; r >= 0; r-- {
			list := slices.Collect(below(r, size))
			last := r + 1
			for _, q := range slices.Backward(list) {
				if above(q) != r || q != last {
					t.Fatalf("%d of %d: %d stands below, under %d; the next is %d", r, size, q, above(q), last)
				}
				last = under[q]
			}
			under[r] = last
			if tr := new(treeState); size > TreeRanks {
				if tr.begin(r, size); tr.upTo != last {
					t.Fatalf("%d of %d: the ranks under it end at %d, want %d", r, size, tr.upTo, last)
				}
			}
			if n := len(slices.Collect(Near(r, size))); n > 4*treeFan {
				t.Errorf("%d of %d has %d beside it", r, size, n)
			}
		}
		if under[0] != size {
			t.Fatalf("%d: %d ranks are in the tree", size, under[0])
		}
	}
}

// On an area of many ranks an old count or result is never taken for that of the present call,
// however many calls by messages come between.
func TestCentralNumbersWrap(t *testing.T) {
	for _, between := range []uint32{RenewEvery, SeqMask/2 + 1 + RenewEvery, SeqMask + 1} {
		for name, central := range map[string]bool{"central": true, "levels": false} {
			t.Run(fmt.Sprintf("%s %#x", name, between), func(t *testing.T) {
				c := newCrew(TreeRanks + 1)
				for r := range c.areas {
					if central {
						c.areas[r].TellCentral()
					}
					c.areas[r].Decided()
				}
				for at := uint32(0); at < 2*between; at += RenewEvery {
					for r := range c.areas {
						c.areas[r].Renew((at-1)&SeqMask + 1)
					}
					if at%between == 0 {
						c.seq = at & SeqMask
						c.mark++
						c.run(t, collectives.OpAllreduce, 0)
						c.run(t, collectives.OpBarrier, 0)
						c.run(t, collectives.OpReduce, 7)
					}
				}
			})
		}
	}
}
