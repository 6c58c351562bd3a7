// SPDX-License-Identifier: Apache-2.0

package collectives

import (
	"slices"
	"testing"
)

func TestNodes(t *testing.T) {
	n := NewNodes([]uint32{7, 7, 3, 7, 3, 1 << 31})
	if n.Len() != 3 || n.Contiguous() || n.most != 3 {
		t.Errorf("%+v", n)
	}
	for node, want := range [][]int32{{0, 1, 3}, {2, 4}, {5}} {
		if !slices.Equal(n.Ranks(node), want) {
			t.Errorf("node %d has ranks %v", node, n.Ranks(node))
		}
		for i, r := range want {
			if n.Of(int(r)) != node || n.Inside(int(r)) != i {
				t.Errorf("rank %d: place %d of node %d", r, n.Inside(int(r)), n.Of(int(r)))
			}
		}
	}
	if !slices.Equal(n.first, []int32{0, 3, 5}) {
		t.Errorf("first %v", n.first)
	}
	for size, several := range map[int][3]bool{1: {}, 2: {}, 3: {false, false, true}, 6: {false, false, true}} {
		for i, host := range []func(int) int{
			func(int) int { return 4 }, func(r int) int { return r }, func(r int) int { return r / 2 },
		} {
			hosts := make([]uint32, size)
			for r := range hosts {
				hosts[r] = uint32(host(r))
			}
			n := NewNodes(hosts)
			if n.severalOf(size) != several[i] || !n.Contiguous() {
				t.Errorf("size %d, layout %d: %+v", size, i, n)
			}
		}
	}
	if (*Nodes)(nil).severalOf(4) {
		t.Error("no nodes are several")
	}
}
