// SPDX-License-Identifier: Apache-2.0

package shmcoll

import "gompi/internal/control/collmem"

import "testing"

// Blocks of one rank do not lie in those of another, nor in the area.
func TestHeapRanges(t *testing.T) {
	for _, ranks := range []int{2, 3, 8, 9, 65, 256, 257} {
		for _, sparse := range []bool{false, true} {
			at := collmem.Size(ranks)
			for r := range ranks {
				start, end := collmem.HeapRange(r, ranks, sparse)
				if start < at || end < start || start%collmem.BlockAlign != 0 || end%collmem.BlockAlign != 0 {
					t.Fatalf("rank %d of %d: %d to %d, behind %d", r, ranks, start, end, at)
				}
				if most := collmem.MostBlockBytes(ranks, sparse); end > start && end-start < most || most < linePair*(1+ranks) {
					t.Fatalf("rank %d of %d: no block fits", r, ranks)
				}
				at = end
			}
			if n := collmem.HeapBytes(ranks, sparse); n != at || n > 512<<20 {
				t.Errorf("%d ranks: %d bytes, the last range ends at %d", ranks, n, at)
			}
		}
	}
}
