// SPDX-License-Identifier: Apache-2.0

package nodecoll

import (
	"slices"
	"testing"
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
