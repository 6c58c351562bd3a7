// SPDX-License-Identifier: Apache-2.0

package flat

import "testing"

// The trees and cuts that the algorithms stand on.
func TestBuildingBlocks(t *testing.T) {
	for p := 1; p <= 70; p++ {
		covered := 1
		for v := range p {
			at := v + 1
			for k := range children(v, p) {
				c := v + 1<<k
				if c != at || parent(c) != v {
					t.Fatalf("size %d: child %d of %d is %d with parent %d", p, k, v, c, parent(c))
				}
				at += span(c, p)
				covered++
			}
			if at != v+span(v, p) {
				t.Fatalf("size %d: the children of %d end at %d, its subtree at %d", p, v, at, v+span(v, p))
			}
		}
		if covered != p {
			t.Errorf("size %d: the tree has %d vertices", p, covered)
		}
		for _, n := range []int64{0, 1, 5, 69, 140, 1<<63 - 1} {
			if cut(n, p, 0) != 0 || cut(n, p, p) != n {
				t.Errorf("cut of %d by %d is not whole", n, p)
			}
			_, longest := piece(n, p, 0, 1)
			_, shortest := piece(n, p, p-1, p)
			if longest-shortest > 1 || shortest < 0 {
				t.Errorf("cut of %d by %d: pieces of %d and %d", n, p, longest, shortest)
			}
		}
	}
}
