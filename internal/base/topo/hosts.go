// SPDX-License-Identifier: Apache-2.0

package topo

import "slices"

// hosts groups ranks by host. Hosts are numbered in the order of their lowest ranks.
type hosts struct {
	host  []int32   // host of each rank
	ranks [][]int32 // ranks of each host, ascending
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

// largest returns the number of ranks of the largest host.
func (h hosts) largest() int {
	n := 0
	for _, ranks := range h.ranks {
		n = max(n, len(ranks))
	}
	return n
}

// single reports whether all ranks are on one host, so no other order is better.
func (h hosts) single() bool { return len(h.ranks) < 2 }

// assign turns a map of positions to hosts into a map of positions to ranks. Each
// host's positions, in ascending order, go to its ranks, in ascending order.
func (h hosts) assign(at []int32) []int {
	order := make([]int, len(at))
	next := slices.Clone(h.ranks)
	for place, k := range at {
		order[place] = int(next[k][0])
		next[k] = next[k][1:]
	}
	return order
}
