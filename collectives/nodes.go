// SPDX-License-Identifier: Apache-2.0

package collectives

import "fmt"

// Nodes says which ranks of a group share a host. It is equal on all ranks,
// made once for a communicator, and immutable.
type Nodes struct {
	of     []int32   // node of each rank
	ranks  [][]int32 // of each node, ascending; the first is its leader
	inside []int32   // place of each rank among its node's ranks
	first  []int32   // of each node, the number of ranks on the nodes before it
	most   int       // ranks of the largest node
	// contiguous: the ranks of each node follow one another.
	contiguous bool
}

// NewNodes numbers the hosts of all ranks in the order of their lowest ranks;
// host may hold any numbers. It keeps nothing of host.
func NewNodes(host []uint32) *Nodes {
	n := &Nodes{of: make([]int32, len(host)), inside: make([]int32, len(host))}
	seen := make(map[uint32]int32)
	for r, h := range host {
		k, ok := seen[h]
		if !ok {
			k = int32(len(n.ranks))
			seen[h] = k
			n.ranks = append(n.ranks, nil)
		}
		n.of[r], n.inside[r] = k, int32(len(n.ranks[k]))
		n.ranks[k] = append(n.ranks[k], int32(r))
	}
	before := 0
	n.contiguous = true
	for _, ranks := range n.ranks {
		n.first = append(n.first, int32(before))
		n.contiguous = n.contiguous && int(ranks[len(ranks)-1])-int(ranks[0]) == len(ranks)-1
		n.most = max(n.most, len(ranks))
		before += len(ranks)
	}
	return n
}

// teamRanks is how many ranks a team has, and mostAlike for how many ranks there
// are none.
const (
	TeamRanks = 16
	mostAlike = 64
)

// Teams divides many ranks of one host as if they were on several, nil if they
// are not many: most ranks then have to do with one other in small operations,
// where else each exchanges with log2 P. That counts where ranks share
// processors, and each message waits until a rank has its turn, and for the
// contacts that ranks make.
func Teams(size int) *Nodes {
	if size <= mostAlike {
		return nil
	}
	team := make([]uint32, size)
	for r := range team {
		team[r] = uint32(r / TeamRanks)
	}
	return NewNodes(team)
}

// Len is the number of nodes.
func (n *Nodes) Len() int { return len(n.ranks) }

// Of is the node of a rank.
func (n *Nodes) Of(rank int) int { return int(n.of[rank]) }

// Ranks returns the ranks of a node, ascending; the first is its leader. The
// caller must not change them.
func (n *Nodes) Ranks(node int) []int32 { return n.ranks[node] }

// Inside is a rank's place among the ranks of its node.
func (n *Nodes) Inside(rank int) int { return int(n.inside[rank]) }

// Before is the number of ranks on the nodes before one.
func (n *Nodes) Before(node int) int { return int(n.first[node]) }

// Most is the number of ranks of the largest node.
func (n *Nodes) Most() int { return n.most }

// Contiguous reports whether the ranks of each node follow one another. Nodes
// are then in the order of their ranks.
func (n *Nodes) Contiguous() bool { return n.contiguous }

// severalOf reports whether size ranks are on several nodes, but not each on
// one of its own.
func (n *Nodes) severalOf(size int) bool { return n != nil && 1 < n.Len() && n.Len() < size }

// String gives the ranks of each node.
func (n *Nodes) String() string { return fmt.Sprint(n.ranks) }
