// SPDX-License-Identifier: Apache-2.0

package testlab

import "slices"

// mostComms bounds the communicators that live at one time.
const mostComms = 7

// theme is what the collectives of a program have in common, so that some
// programs do much of one thing.
type theme struct {
	ops         []CollOp
	blocking    int // so many of 100
	large       int
	persistence int // of those that do not block
}

func (g *generator) someTheme() theme {
	t := theme{blocking: 55, large: 7, persistence: 40}
	if g.chance(35) {
		t.blocking = 92
	}
	if g.chance(35) {
		t.large = 40
	}
	for op := range NeighborAllgather {
		t.ops = append(t.ops, op)
	}
	if g.chance(50) {
		g.r.Shuffle(len(t.ops), func(i, j int) { t.ops[i], t.ops[j] = t.ops[j], t.ops[i] })
		t.ops = t.ops[:1+g.r.IntN(4)]
	}
	return t
}

func (g *generator) collective(e *Event) {
	l := g.p.Layout(e.Comm)
	e.Kind, e.Elem = Collective, Elem(g.r.IntN(int(NumElems)))
	e.Coll = g.theme.ops[g.r.IntN(len(g.theme.ops))]
	if l.Inter && e.Coll >= Scan {
		e.Coll = Allreduce
	}
	if g.p.topology(e.Comm) != nil && g.chance(50) {
		e.Coll = NeighborAllgather + CollOp(g.r.IntN(int(numColls-NeighborAllgather)))
	}
	switch {
	case g.chance(g.theme.blocking):
		e.Form = Blocking
	case g.chance(g.theme.persistence):
		e.Form = Persistent
	default:
		e.Form = Nonblocking
	}
	e.Root, e.RootSide, e.RecvDue = g.r.IntN(maxRanks), g.r.IntN(2), g.due(e.ID)
	e.InPlace, e.Gaps, e.Derived = g.chance(30), g.chance(50), g.chance(25)
	most := 0
	for _, group := range l.Groups {
		most = max(most, len(group))
	}
	e.Count = g.count(e, most)
}

// count is a number of elements for blocks of which a rank of a group of size
// may have many.
func (g *generator) count(e *Event, size int) int {
	n := 0
	switch k := g.r.IntN(100); {
	case g.chance(g.theme.large):
		n = 1 + g.r.IntN(40<<10)
	case k < 8:
	case k < 40:
		n = 1 + g.r.IntN(8)
	case k < 80:
		n = 1 + g.r.IntN(600)
	default:
		n = 1 + g.r.IntN(8<<10)
	}
	switch e.Coll {
	case Bcast, Reduce, Allreduce, Scan, Exscan:
	case ReduceScatterBlock, ReduceScatter:
		n = min(n, 40<<10/(size*size))
	default:
		n = min(n, 80<<10/size)
	}
	if g.chance(50) {
		n &^= 1 // so that types of two elements fit
	}
	return n
}

func (g *generator) starts(e *Event) bool {
	e.Kind, e.Comm, e.RecvDue = Starts, World, g.due(e.ID)
	for _, i := range g.r.Perm(len(g.prepared)) {
		if p := &g.prepared[i]; p.busy < e.ID && len(e.Of) < 5 {
			e.Of = append(e.Of, p.id)
			p.busy = e.RecvDue
		}
	}
	return len(e.Of) > 0
}

// communicator makes or frees one.
func (g *generator) communicator(e *Event) {
	if len(g.comms) > 1 && (g.chance(30) || len(g.comms) >= mostComms) {
		e.Kind, e.Comm = Free, g.comms[1+g.r.IntN(len(g.comms)-1)]
		if !slices.ContainsFunc(g.prepared, func(p prepared) bool { return p.comm == e.Comm && p.busy >= e.ID }) {
			return
		}
	}
	e.Comm = g.comms[g.current]
	l := g.p.Layout(e.Comm)
	e.Kind, e.How, e.Groups = Make, Maker(g.r.IntN(int(numMakers))), l.Groups
	switch {
	case l.Inter && g.chance(40):
		e.How = IntercommMerge
	case !l.Inter && len(l.Groups) > 1 && g.chance(40):
		e.How = IntercommCreate
	case len(l.Groups) == 1 && g.chance(20):
		e.How = Grid + Maker(g.r.IntN(2))
	}
	switch {
	case e.How == IntercommFromGroups && g.p.Ranks > 1:
		all := g.r.Perm(g.p.Ranks)
		cut := 1 + g.r.IntN(len(all)-1)
		e.Comm, e.Groups = World, [][]int{all[:cut], all[cut:]}
		return
	case e.How == IntercommMerge && l.Inter:
		e.Groups = nil
		for i := 0; i < len(l.Groups); i += 2 {
			k := g.r.IntN(2)
			e.Groups = append(e.Groups, slices.Concat(l.Groups[i+k], l.Groups[i+1-k]))
		}
		return
	case e.How == IntercommCreate && !l.Inter && len(l.Groups) > 1:
		e.Groups = l.Groups[:len(l.Groups)&^1]
		return
	case (e.How == Grid || e.How == Graph) && !l.Inter && len(l.Groups) == 1:
		g.topology(e, l.Groups[0])
		return
	case e.How == Idup:
		return
	case !l.Inter && e.How >= Split && e.How <= CommFromGroup:
		if parts := g.parts(l.Groups); len(parts) > 0 {
			e.Groups = parts
			return
		}
	}
	e.How = Dup
}

// topology puts one on a group of e.Comm.
func (g *generator) topology(e *Event, group []int) {
	if e.How == Graph {
		for range g.r.IntN(3*len(group) + 1) {
			e.Edges = append(e.Edges, [2]int{g.r.IntN(len(group)), g.r.IntN(len(group))})
		}
		return
	}
	left := len(group)
	for range 1 + g.r.IntN(3) {
		d := 1 + g.r.IntN(left)
		left /= d
		e.Dims, e.Periods = append(e.Dims, d), append(e.Periods, g.chance(50))
	}
	size := 1
	for _, d := range e.Dims {
		size *= d
	}
	e.Groups = [][]int{group[:size]}
}

// parts cuts groups into some each, in any order, and drops a few.
func (g *generator) parts(groups [][]int) (parts [][]int) {
	for _, group := range groups {
		var rest []int
		for _, i := range g.r.Perm(len(group)) {
			rest = append(rest, group[i])
		}
		for len(rest) > 0 {
			n := 1 + g.r.IntN(len(rest))
			if !g.chance(10) {
				parts = append(parts, rest[:n:n])
			}
			rest = rest[n:]
		}
	}
	return parts
}
