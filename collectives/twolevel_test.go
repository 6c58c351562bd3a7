// SPDX-License-Identifier: Apache-2.0

package collectives

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// maxNodesSize is the largest group that the sweep proves two-level algorithms
// for.
const maxNodesSize = 40

// layouts are ways to spread so many ranks over hosts such that two-level
// algorithms apply.
func layouts(size int) []*Nodes {
	rng := rand.New(rand.NewPCG(uint64(size), 5))
	few := 2 + rng.IntN(max(1, size/2))
	divisor := 2
	for size%divisor != 0 {
		divisor++
	}
	hosts := []func(r int) int{
		func(r int) int { return r / divisor },           // equal
		func(r int) int { return (r + 1) / 4 },           // uneven, in order
		func(r int) int { return r % 3 },                 // round robin
		func(int) int { return rng.IntN(few) },           // any
		func(r int) int { return max(0, r-size+size/3) }, // one large node, others alone
	}
	var all []*Nodes
	for _, host := range hosts {
		if n := spread(size, host); n.severalOf(size) {
			all = append(all, n)
		}
	}
	return all
}

func spread(size int, host func(r int) int) *Nodes {
	hosts := make([]uint32, size)
	for r := range hosts {
		hosts[r] = uint32(host(r))
	}
	return NewNodes(hosts)
}

// sweepNodes visits the cases of a flat algorithm of g's operation on several
// layouts of nodes.
func sweepNodes(g *Algorithm, size int, check func(Case) error) error {
	if size > maxNodesSize || size < 3 {
		return nil
	}
	flat := *g
	flat.TwoLevel = false
	for i, nodes := range layouts(size) {
		if size > 16 && (size+i)%3 > 0 {
			continue
		}
		err := sweep(&flat, size, func(c Case) error {
			c.Nodes = nodes
			return check(c)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

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
			n := spread(size, host)
			if n.severalOf(size) != several[i] || !n.Contiguous() {
				t.Errorf("size %d, layout %d: %+v", size, i, n)
			}
		}
	}
	if (*Nodes)(nil).severalOf(4) {
		t.Error("no nodes are several")
	}
}
