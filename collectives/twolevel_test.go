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

// The order of the ranks is kept where the ranks of each node follow one
// another, and only there may an operation not commute.
func TestNodesOrder(t *testing.T) {
	ordered, mixed := spread(6, func(r int) int { return r / 2 }), spread(6, func(r int) int { return r % 2 })
	for _, g := range []*Algorithm{&reduceNodeOrdered, &allreduceNodeDoubling, &allreduceNodeRabenseifner} {
		claim := *g
		claim.TwoLevel = false // order whatever the nodes
		for _, root := range []int{0, 3} {
			for _, n := range []int64{12, 513} { // short and long inside a node
				if err := Verify(&claim, Case{Size: 6, Root: root, Count: n, Nodes: ordered}); err != nil {
					t.Error(err)
				}
			}
			if Verify(&claim, Case{Size: 6, Root: root, Count: 12, Nodes: mixed}) == nil {
				t.Errorf("%v keeps the order of ranks that are not in that of the nodes", g)
			}
		}
	}
	one := spread(6, func(int) int { return 0 })
	each := spread(6, func(r int) int { return r })
	for _, test := range []struct {
		g           *Algorithm
		nodes       *Nodes
		commutative bool
		want        bool
	}{
		{&allreduceNodeDoubling, ordered, false, true},
		{&allreduceNodeDoubling, mixed, true, true},
		{&allreduceNodeDoubling, mixed, false, false},
		{&reduceNodeBinomial, ordered, false, false},
		{&bcastNodeBinomial, mixed, false, true},
		{&bcastNodeBinomial, one, true, false},
		{&bcastNodeBinomial, each, true, false},
		{&bcastNodeBinomial, nil, true, false},
	} {
		a := Args{Op: test.g.Op, Size: 6, Nodes: test.nodes}
		if got := test.g.Admits(&a, test.commutative); got != test.want {
			t.Errorf("%v, commutative %v, nodes %+v: %v", test.g, test.commutative, test.nodes, got)
		}
	}
}

// One message between each pair of hosts and direction at most, whatever the
// layout, where the aim is few messages.
func TestNodesFewMessages(t *testing.T) {
	for _, nodes := range []*Nodes{spread(12, func(r int) int { return r / 3 }), spread(12, func(r int) int { return r % 5 })} {
		for _, g := range []*Algorithm{&bcastNodeBinomial, &reduceNodeOrdered, &gatherNode, &scatterNode, &allgatherNodeDirect, &alltoallNode} {
			c := Case{Size: 12, Root: 7, Count: 3, Nodes: nodes}
			sent := map[[2]int]int{}
			for r := range c.Size {
				a := c.args(g.Op, r)
				for i := range g.Rounds(&a) {
					for _, s := range g.Round(&a, i, nil) {
						if to := nodes.Of(int(s.Peer)); s.Kind == Send && to != nodes.Of(r) {
							sent[[2]int{nodes.Of(r), to}]++
						}
					}
				}
			}
			if len(sent) == 0 {
				t.Errorf("%v sends nothing between hosts", g)
			}
			for pair, n := range sent {
				if n > 1 {
					t.Errorf("%v: %d messages from host %d to host %d", g, n, pair[0], pair[1])
				}
			}
		}
	}
}
