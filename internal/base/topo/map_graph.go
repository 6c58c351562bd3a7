// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"cmp"
	"container/heap"
	"slices"
)

// Edge is an edge of a graph; its direction does not matter. A negative weight
// counts as 0, and a weight above MaxWeight as MaxWeight.
type Edge struct {
	From, To int32
	Weight   int64
}

// Bounds of MapGraph. All ranks do its work: MaxEdges keeps that within a few seconds
// and 200 MiB. MaxWeight then keeps sums of weights within 63 bits.
const (
	MaxEdges  = 1 << 20
	MaxWeight = 1 << 40
)

// rounds bounds the work of refine to about rounds times (V + E) log V steps.
const rounds = 8

// MapGraph maps ranks to the vertices of a graph so that the edges between hosts
// have little weight. The graph has len(host) vertices, and rank r is on host[r],
// which may be any number. Entry v of the result is the rank at vertex v. The result
// is nil if no map was found that is better than rank v at vertex v, or if the graph
// has more than MaxEdges edges.
//
// The hosts grow one after the other: each takes the vertex with the most weight to
// its own vertices. Then pairs of hosts swap vertices while that helps, as in the
// algorithm of Kernighan and Lin. The same refinement also starts from the given
// order, and the better result counts.
func MapGraph(edges []Edge, host []uint32) []int {
	h := newHosts(host)
	if h.single() || len(edges) > MaxEdges {
		return nil
	}
	g := newGraph(len(host), edges)
	given := slices.Clone(h.host)
	g.refine(given, h)
	grown := g.grow(h)
	g.refine(grown, h)
	best := given
	if g.cut(grown) < g.cut(given) {
		best = grown
	}
	if g.cut(best) >= g.cut(h.host) {
		return nil
	}
	return h.assign(best)
}

// graph is an adjacency list with both ends of each edge and without loops. The
// neighbors of vertex v are to[start[v]:start[v+1]].
type graph struct {
	start  []int32
	to     []int32
	weight []int64
}

func newGraph(n int, edges []Edge) graph {
	g := graph{start: make([]int32, n+1)}
	each := func(f func(a, b int32, w int64)) {
		for _, e := range edges {
			if w := min(max(e.Weight, 0), MaxWeight); e.From != e.To {
				f(e.From, e.To, w)
				f(e.To, e.From, w)
			}
		}
	}
	each(func(a, _ int32, _ int64) { g.start[a+1]++ })
	for v := range n {
		g.start[v+1] += g.start[v]
	}
	g.to, g.weight = make([]int32, g.start[n]), make([]int64, g.start[n])
	at := slices.Clone(g.start)
	each(func(a, b int32, w int64) {
		g.to[at[a]], g.weight[at[a]] = b, w
		at[a]++
	})
	return g
}

func (g graph) len() int { return len(g.start) - 1 }

// cut returns the weight of the edges between hosts.
func (g graph) cut(at []int32) int64 {
	n := int64(0)
	for v := range g.len() {
		for i := g.start[v]; i < g.start[v+1]; i++ {
			if at[v] != at[g.to[i]] {
				n += g.weight[i]
			}
		}
	}
	return n / 2
}

// attraction returns the weight between a vertex and a host.
func (g graph) attraction(at []int32, v, host int32) int64 {
	n := int64(0)
	for i := g.start[v]; i < g.start[v+1]; i++ {
		if at[g.to[i]] == host {
			n += g.weight[i]
		}
	}
	return n
}

// grow fills the hosts one after the other.
func (g graph) grow(h hosts) []int32 {
	at := slices.Repeat([]int32{-1}, g.len())
	pull := make([]int64, g.len())
	seed := int32(0)
	for k, ranks := range h.ranks {
		clear(pull)
		var next candidates
		for range ranks {
			v := next.pop(at, pull)
			if v < 0 {
				for at[seed] >= 0 {
					seed++
				}
				v = seed
			}
			at[v] = int32(k)
			for i := g.start[v]; i < g.start[v+1]; i++ {
				if u := g.to[i]; at[u] < 0 {
					pull[u] += g.weight[i]
					heap.Push(&next, candidate{u, pull[u]})
				}
			}
		}
	}
	return at
}

// candidate is a vertex that a growing host may take.
type candidate struct {
	v          int32
	attraction int64
}

// candidates is a heap of vertices: the one with the most attraction is first, then
// the lowest. An entry is stale when its vertex has a host or has gained attraction.
type candidates []candidate

func (p candidates) Len() int      { return len(p) }
func (p candidates) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p candidates) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(p[j].attraction, p[i].attraction), cmp.Compare(p[i].v, p[j].v)) < 0
}
func (p *candidates) Push(x any) { *p = append(*p, x.(candidate)) }
func (p *candidates) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	*p = (*p)[:last]
	return x
}

// pop removes and returns the vertex with the most attraction, or -1 if there is none.
func (p *candidates) pop(at []int32, pull []int64) int32 {
	for len(*p) > 0 {
		if x := heap.Pop(p).(candidate); at[x.v] < 0 && x.attraction == pull[x.v] {
			return x.v
		}
	}
	return -1
}

// move is a vertex that would be better on another host.
type move struct {
	v    int32
	gain int64
}

// refine swaps vertices of two hosts as long as each swap reduces the weight between
// hosts.
func (g graph) refine(at []int32, h hosts) {
	for range rounds {
		moves := g.moves(at, len(h.ranks))
		swapped := false
		for _, pair := range order(moves) {
			there, back := moves[pair], moves[[2]int32{pair[1], pair[0]}]
			for i := range min(len(there), len(back)) {
				if g.swap(at, there[i].v, back[i].v, pair) {
					swapped = true
				}
			}
		}
		if !swapped {
			return
		}
	}
}

// moves returns the best move of each vertex, keyed by {own host, other host}, the
// greatest gain first.
func (g graph) moves(at []int32, hosts int) map[[2]int32][]move {
	moves := map[[2]int32][]move{}
	weight := make([]int64, hosts)
	for v := range g.len() {
		own, best := at[v], int32(-1)
		near := g.to[g.start[v]:g.start[v+1]]
		for i, u := range near {
			weight[at[u]] += g.weight[int(g.start[v])+i]
		}
		for _, u := range near {
			if k := at[u]; k != own && (best < 0 || weight[k] > weight[best] || weight[k] == weight[best] && k < best) {
				best = k
			}
		}
		if best >= 0 {
			pair := [2]int32{own, best}
			moves[pair] = append(moves[pair], move{int32(v), weight[best] - weight[own]})
		}
		for _, u := range near {
			weight[at[u]] = 0
		}
	}
	for _, list := range moves {
		slices.SortStableFunc(list, func(a, b move) int { return cmp.Compare(b.gain, a.gain) })
	}
	return moves
}

// order returns the pairs of hosts that have moves in both directions.
func order(moves map[[2]int32][]move) [][2]int32 {
	var pairs [][2]int32
	for p := range moves {
		if p[0] < p[1] && moves[[2]int32{p[1], p[0]}] != nil {
			pairs = append(pairs, p)
		}
	}
	slices.SortFunc(pairs, func(a, b [2]int32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return pairs
}

// swap exchanges the hosts of two vertices if that reduces the weight between hosts,
// and reports whether it did.
func (g graph) swap(at []int32, a, b int32, pair [2]int32) bool {
	gain := g.attraction(at, a, pair[1]) - g.attraction(at, a, pair[0]) + g.attraction(at, b, pair[0]) - g.attraction(at, b, pair[1])
	for i := g.start[a]; i < g.start[a+1]; i++ {
		if g.to[i] == b {
			gain -= 2 * g.weight[i]
		}
	}
	if gain <= 0 {
		return false
	}
	at[a], at[b] = pair[1], pair[0]
	return true
}
