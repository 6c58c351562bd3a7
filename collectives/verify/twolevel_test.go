// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"math/rand/v2"
	"testing"

	"gompi/collectives"
)

// maxNodesSize is the largest group that the sweep proves two-level algorithms
// for.
const maxNodesSize = 40

// layouts are ways to spread so many ranks over hosts such that two-level
// algorithms apply.
func layouts(size int) []*collectives.Nodes {
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
	var all []*collectives.Nodes
	for _, host := range hosts {
		if n := spread(size, host); 1 < n.Len() && n.Len() < size {
			all = append(all, n)
		}
	}
	return all
}

// spread makes nodes of the hosts that host gives.
func spread(size int, host func(r int) int) *collectives.Nodes {
	hosts := make([]uint32, size)
	for r := range hosts {
		hosts[r] = uint32(host(r))
	}
	return collectives.NewNodes(hosts)
}

// sweepNodes visits the cases of a flat algorithm of g's operation on several
// layouts of nodes.
func sweepNodes(g *collectives.Algorithm, size int, check func(Case) error) error {
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

// The order of the ranks is kept where the ranks of each node follow one
// another, and only there may an operation not commute.
func TestNodesOrder(t *testing.T) {
	ordered, mixed := spread(6, func(r int) int { return r / 2 }), spread(6, func(r int) int { return r % 2 })
	for _, g := range []*collectives.Algorithm{named(collectives.OpReduce, "node-ordered"), named(collectives.OpAllreduce, "node-doubling"), named(collectives.OpAllreduce, "node-rabenseifner")} {
		claim := *g
		claim.TwoLevel = false // order whatever the nodes
		for _, root := range []int{0, 3} {
			for _, n := range []int64{12, 513} { // short and long inside a node
				if err := Prove(&claim, Case{Size: 6, Root: root, Count: n, Nodes: ordered}); err != nil {
					t.Error(err)
				}
			}
			if Prove(&claim, Case{Size: 6, Root: root, Count: 12, Nodes: mixed}) == nil {
				t.Errorf("%v keeps the order of ranks that are not in that of the nodes", g)
			}
		}
	}
	one := spread(6, func(int) int { return 0 })
	each := spread(6, func(r int) int { return r })
	for _, test := range []struct {
		g           *collectives.Algorithm
		nodes       *collectives.Nodes
		commutative bool
		want        bool
	}{
		{named(collectives.OpAllreduce, "node-doubling"), ordered, false, true},
		{named(collectives.OpAllreduce, "node-doubling"), mixed, true, true},
		{named(collectives.OpAllreduce, "node-doubling"), mixed, false, false},
		{named(collectives.OpReduce, "node-binomial"), ordered, false, false},
		{named(collectives.OpBcast, "node-binomial"), mixed, false, true},
		{named(collectives.OpBcast, "node-binomial"), one, true, false},
		{named(collectives.OpBcast, "node-binomial"), each, true, false},
		{named(collectives.OpBcast, "node-binomial"), nil, true, false},
	} {
		a := collectives.Args{Op: test.g.Op, Size: 6, Nodes: test.nodes}
		if got := test.g.Admits(&a, test.commutative); got != test.want {
			t.Errorf("%v, commutative %v, nodes %+v: %v", test.g, test.commutative, test.nodes, got)
		}
	}
}

// One message between each pair of hosts and direction at most, whatever the
// layout, where the aim is few messages.
func TestNodesFewMessages(t *testing.T) {
	for _, nodes := range []*collectives.Nodes{spread(12, func(r int) int { return r / 3 }), spread(12, func(r int) int { return r % 5 })} {
		for _, g := range []*collectives.Algorithm{named(collectives.OpBcast, "node-binomial"), named(collectives.OpReduce, "node-ordered"), named(collectives.OpGather, "node-linear"), named(collectives.OpScatter, "node-linear"), named(collectives.OpAllgather, "node-direct"), named(collectives.OpAlltoall, "node-direct")} {
			c := Case{Size: 12, Root: 7, Count: 3, Nodes: nodes}
			sent := map[[2]int]int{}
			for r := range c.Size {
				a := c.args(g.Op, r)
				for i := range g.Rounds(&a) {
					for _, s := range g.Round(&a, i, nil) {
						if to := nodes.Of(int(s.Peer)); s.Kind == collectives.Send && to != nodes.Of(r) {
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
