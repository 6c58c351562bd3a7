// SPDX-License-Identifier: Apache-2.0

package twolevel

import (
	"gompi/collectives"
	"gompi/collectives/stage"
	"gompi/collectives/step"
)

// Two-level alltoall. The head of a node collects the blocks of its ranks, sorts
// them by node, exchanges one message with each other head, sorts what it gets
// by rank, and hands it out.
//
//	steps    3
//	sent     n*P by all but heads; a head all blocks between its node and others,
//	         and n*P per mate
//	scratch  at heads about twice n*P times the ranks of the node
//	source   Traeff, Rougier: MPI collectives and datatypes for hierarchical
//	         all-to-all communication. EuroMPI 2014
var alltoallDirect = collectives.Algorithm{
	Name:     "node-direct",
	Op:       collectives.OpAlltoall,
	Doc:      "one message for each pair of nodes; for small blocks",
	TwoLevel: true,
	Rounds: func(a *collectives.Args) int {
		if isHead(a) && len(ownNode(a)) > 1 {
			return 3
		}
		return 2
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		row := a.Count * int64(a.Size)
		switch at := stage.Head(a, nodeOf(a)); {
		case a.Rank == at && r == 0:
			return collectRows(dst, a)
		case a.Rank == at && r == 1:
			return exchangeRows(dst, a)
		case a.Rank == at:
			return handRows(dst, a)
		case r == 0:
			return step.Send(dst, at, step.In(0, row))
		default:
			return step.Recv(dst, at, step.Out(0, row))
		}
	},
	Scratch: func(a *collectives.Args) int64 {
		if !isHead(a) {
			return 0
		}
		return rowsOf(a).scratch()
	},
	Steps: func(*collectives.Args) int { return 3 },
	Sent: func(a *collectives.Args) int64 {
		row := a.Count * int64(a.Size)
		if !isHead(a) {
			return row
		}
		s := int64(len(ownNode(a)))
		return a.Count*s*(int64(a.Size)-s) + row*(s-1)
	},
}

// rows are the parts of a head's scratch, of blocks of n elements each. With s
// ranks on the node and P in all, the first part keeps what the other ranks of
// the node send inside it, [source][target]. The second holds their rows of P
// blocks, then what comes from each other node, [source][target]. The third
// holds what goes to each other node, [source][target], then a row of P blocks
// for each of the other ranks.
type rows struct {
	n, p, s, part int64
}

func rowsOf(a *collectives.Args) rows {
	p, s := int64(a.Size), int64(len(ownNode(a)))
	return rows{a.Count, p, s, max((s-1)*p, s*(p-s))}
}

func (x rows) scratch() int64 { return x.n * (x.s*(x.s-1) + 2*x.part) }

// kept is the block from mate i, not the head, to mate j.
func (x rows) kept(i, j int) collectives.Ref { return x.block(int64(i-1)*x.s + int64(j)) }

// row is the part of the row from or to a mate, not the head, that starts with
// the block of rank q.
func (x rows) row(upper bool, i, q int) collectives.Ref {
	return x.block(x.start(upper) + int64(i-1)*x.p + int64(q))
}

func (x rows) block(i int64) collectives.Ref { return step.Scratch(i*x.n, x.n) }

func (x rows) start(upper bool) int64 {
	if upper {
		return x.s*(x.s-1) + x.part
	}
	return x.s * (x.s - 1)
}

// window is what goes to another node, or comes from it.
func (x rows) window(a *collectives.Args, upper bool, node int) collectives.Ref {
	before := int64(a.Nodes.Before(node))
	if node > nodeOf(a) {
		before -= x.s
	}
	return step.Scratch(x.n*(x.start(upper)+x.s*before), x.n*x.s*int64(len(a.Nodes.Ranks(node))))
}

func collectRows(dst []collectives.Step, a *collectives.Args) []collectives.Step {
	x, local, own := rowsOf(a), ownNode(a), nodeOf(a)
	for i := 1; i < len(local); i++ {
		r := x.row(false, i, 0)
		r.Len *= x.p
		dst = step.Recv(dst, int(local[i]), r)
	}
	for k := range a.Nodes.Len() {
		if k == own {
			for i := 1; i < len(local); i++ {
				for j, q := range local {
					dst = step.Copy(dst, x.row(false, i, int(q)), x.kept(i, j))
				}
			}
			continue
		}
		to := x.window(a, true, k)
		to.Len = x.n
		for i := range local {
			for _, q := range a.Nodes.Ranks(k) {
				from := step.In(int64(q)*x.n, x.n)
				if i > 0 {
					from = x.row(false, i, int(q))
				}
				dst = step.Copy(dst, from, to)
				to.Off += x.n
			}
		}
	}
	return dst
}

func exchangeRows(dst []collectives.Step, a *collectives.Args) []collectives.Step {
	x, local, own, nodes := rowsOf(a), ownNode(a), nodeOf(a), a.Nodes.Len()
	for d := 1; d < nodes; d++ {
		k := step.Wrap(own+d, nodes)
		dst = step.Send(dst, stage.Head(a, k), x.window(a, true, k))
	}
	for d := 1; d < nodes; d++ {
		k := step.Wrap(own-d, nodes)
		dst = step.Recv(dst, stage.Head(a, k), x.window(a, false, k))
	}
	// to is the place of the block from rank q in the row of mate j.
	to := func(j int, q int32) collectives.Ref {
		if j == 0 {
			return step.Out(int64(q)*x.n, x.n)
		}
		return x.row(true, j, int(q))
	}
	// In place these must be read before Out is written.
	for j := 1; j < len(local); j++ {
		dst = step.Copy(dst, step.In(int64(local[j])*x.n, x.n), to(j, local[0]))
	}
	if !a.InPlace {
		dst = step.Copy(dst, step.In(int64(a.Rank)*x.n, x.n), to(0, local[0]))
	}
	for i := 1; i < len(local); i++ {
		for j := range local {
			dst = step.Copy(dst, x.kept(i, j), to(j, local[i]))
		}
	}
	for k := range nodes {
		if k == own {
			continue
		}
		from := x.window(a, false, k)
		from.Len = x.n
		for _, q := range a.Nodes.Ranks(k) {
			for j := range local {
				dst = step.Copy(dst, from, to(j, q))
				from.Off += x.n
			}
		}
	}
	return dst
}

func handRows(dst []collectives.Step, a *collectives.Args) []collectives.Step {
	x, local := rowsOf(a), ownNode(a)
	for j := 1; j < len(local); j++ {
		r := x.row(true, j, 0)
		r.Len *= x.p
		dst = step.Send(dst, int(local[j]), r)
	}
	return dst
}
