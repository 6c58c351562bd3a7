// SPDX-License-Identifier: Apache-2.0

package topo

import "slices"

// hosts are the hosts of ranks, numbered in the order of their lowest ranks.
type hosts struct {
	host  []int32   // of each rank
	ranks [][]int32 // of each host, ascending
}

func newHosts(host []uint32) hosts {
	h := hosts{host: make([]int32, len(host))}
	number := map[uint32]int32{}
	for r, x := range host {
		k, ok := number[x]
		if !ok {
			k = int32(len(h.ranks))
			number[x] = k
			h.ranks = append(h.ranks, nil)
		}
		h.host[r] = k
		h.ranks[k] = append(h.ranks[k], int32(r))
	}
	return h
}

// most is the number of ranks of the largest host.
func (h hosts) largest() int {
	n := 0
	for _, ranks := range h.ranks {
		n = max(n, len(ranks))
	}
	return n
}

// one reports whether nothing can be gained by another order.
func (h hosts) single() bool { return len(h.ranks) < 2 }

// assign gives the places that are to be on a host, ascending, to its ranks,
// ascending: at[place] is a host, the result's entry a rank.
func (h hosts) assign(at []int32) []int {
	order := make([]int, len(at))
	next := slices.Clone(h.ranks)
	for place, k := range at {
		order[place] = int(next[k][0])
		next[k] = next[k][1:]
	}
	return order
}
