// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"context"
	"fmt"
	"slices"

	"gompi/internal/base/fault"
	"gompi/internal/base/group"
	"gompi/internal/base/wire"
	"gompi/internal/core"
)

// Group is an ordered set of processes: a small immutable value. A million
// ranks that lie in ranges take a few bytes. The zero Group is empty
// (MPI_GROUP_EMPTY). All methods are local. MPI 4.1 section 7.3.
type Group struct {
	proc    *Process // whose group it is; nil for the zero Group
	members wire.Members
	user    context.Context // gives up CommFromGroup; nil: never
	child   offspring
}

// offspring is what communicators get that are made of a group.
type offspring struct {
	handler *ErrorHandler // sees also the errors of making them
	info    *Info         // never changed in place
	space   *sendBuffer
	over    []*core.Output  // of changes that are not decided
	raise   func(err error) // the session's error handler; nil: the group came of none
}

// RankRange names the ranks First, First+Stride, ... up to Last, which need
// not be among them. Stride is negative if Last is below First.
type RankRange struct{ First, Last, Stride int }

// Comparison is how two groups or communicators compare.
type Comparison uint8

// The results of Compare. MPI 4.1 sections 7.3.1 and 7.4.1.
const (
	Unequal   Comparison = iota
	Similar              // the same members in another order
	Congruent            // communicators: Ident groups in different contexts
	Ident                // the same members in the same order; the same communicator
)

// String gives the name of the result in lower case.
func (x Comparison) String() string {
	switch x {
	case Unequal:
		return "unequal"
	case Similar:
		return "similar"
	case Congruent:
		return "congruent"
	case Ident:
		return "ident"
	}
	return fmt.Sprintf("comparison %d", uint8(x))
}

func compare(a, b wire.Members) Comparison {
	switch group.Compare(a, b) {
	case group.Ident:
		return Ident
	case group.Similar:
		return Similar
	}
	return Unequal
}

func (p *Process) groupOf(m wire.Members, over []*core.Output) Group {
	return Group{proc: p, members: m, child: offspring{over: over}}
}

// WithContext returns the same group for a CommFromGroup that gives up when
// ctx ends.
func (g Group) WithContext(ctx context.Context) Group {
	if ctx == nil {
		panic("gompi: WithContext(nil)")
	}
	g.user = ctx
	return g
}

// WithErrorHandler returns the same group for communicators that CommFromGroup and
// IntercommCreateFromGroups make with this error handler. It sees the errors of these
// calls, too, on the communicator Self, before the error handler of the session of
// which g came. Local. MPI 4.1 section 7.4.2.
func (g Group) WithErrorHandler(h ErrorHandler) Group {
	if g.child.handler = nil; h != nil {
		g.child.handler = &h
	}
	return g
}

// WithInfo returns the same group for communicators that CommFromGroup and
// IntercommCreateFromGroups make with a copy of these hints. Local.
// MPI 4.1 section 7.4.2.
func (g Group) WithInfo(info *Info) Group {
	g.child.info = info.Dup()
	return g
}

// WithSendBuffer returns the same group for communicators that CommFromGroup and
// IntercommCreateFromGroups make, and that b Serves. Local.
func (g Group) WithSendBuffer(b SendBuffer) Group {
	g.child.space = b.space
	return g
}

// Size is the number of processes. MPI 4.1 section 7.3.1.
func (g Group) Size() int { return g.members.Len() }

// Rank is the caller's rank in the group, or Undefined. MPI 4.1 section 7.3.1.
func (g Group) Rank() int { return g.rankOf(g.proc) }

// rankOf is the rank of a process, or Undefined. p may be nil.
func (g Group) rankOf(p *Process) int {
	if p != nil {
		if r := g.members.Index(p.core.Self); r >= 0 {
			return r
		}
	}
	return Undefined
}

// Compare tells how two groups compare: Ident, Similar or Unequal.
// MPI 4.1 section 7.3.1.
func (g Group) Compare(o Group) Comparison { return compare(g.members, o.members) }

// Translate gives the ranks in o of the processes that have the given ranks in
// g: Undefined for a process that is not in o, ProcNull for ProcNull. A rank
// that does not exist gives ErrRank. MPI 4.1 section 7.3.1.
func (g Group) Translate(ranks []int, o Group) ([]int, error) {
	out := make([]int, len(ranks))
	for i, r := range ranks {
		switch {
		case r == ProcNull:
			out[i] = ProcNull
		case r < 0 || r >= g.Size():
			return nil, groupError("Group.Translate", fmt.Errorf("rank %d of %d", r, g.Size()))
		default:
			if out[i] = o.members.Index(g.members.At(r)); out[i] < 0 {
				out[i] = Undefined
			}
		}
	}
	return out, nil
}

// Union is the processes of g, then those of o that are not in g.
// MPI 4.1 section 7.3.2.
func (g Group) Union(o Group) Group { return g.with(o, group.Union(g.members, o.members)).over(o) }

// Intersection is the processes of g that are in o, in the order of g.
// MPI 4.1 section 7.3.2.
func (g Group) Intersection(o Group) Group {
	return g.with(o, group.Intersection(g.members, o.members)).over(o)
}

// Difference is the processes of g that are not in o, in the order of g.
// MPI 4.1 section 7.3.2.
func (g Group) Difference(o Group) Group { return g.with(o, group.Difference(g.members, o.members)) }

// Incl is the processes of g with the given ranks, in that order. Ranks must
// exist and be different, else ErrRank. MPI 4.1 section 7.3.2.
func (g Group) Incl(ranks []int) (Group, error) {
	return g.result("Group.Incl")(group.Incl(g.members, ranks))
}

// Excl is the processes of g without those of the given ranks, which must
// exist and be different, else ErrRank. MPI 4.1 section 7.3.2.
func (g Group) Excl(ranks []int) (Group, error) {
	return g.result("Group.Excl")(group.Excl(g.members, ranks))
}

// RangeIncl is the processes of g with the ranks of the ranges, in that order.
// Ranks must exist and be different, else ErrRank. MPI 4.1 section 7.3.2.
func (g Group) RangeIncl(ranges []RankRange) (Group, error) {
	return g.result("Group.RangeIncl")(group.RangeIncl(g.members, triplets(ranges)))
}

// RangeExcl is the processes of g without those with the ranks of the ranges,
// which must exist and be different, else ErrRank. MPI 4.1 section 7.3.2.
func (g Group) RangeExcl(ranges []RankRange) (Group, error) {
	return g.result("Group.RangeExcl")(group.RangeExcl(g.members, triplets(ranges)))
}

// with is a group made of g and o: either may be the zero Group.
func (g Group) with(o Group, m wire.Members) Group {
	if g.proc == nil {
		g.proc, g.user, g.child = o.proc, o.user, o.child
	}
	g.members = m
	return g
}

// over is g, whose processes are also of o.
func (g Group) over(o Group) Group {
	for _, x := range o.child.over {
		if !slices.Contains(g.child.over, x) {
			g.child.over = append(slices.Clip(g.child.over), x)
		}
	}
	return g
}

func (g Group) result(op fault.Call) func(wire.Members, error) (Group, error) {
	return func(m wire.Members, err error) (Group, error) {
		if err != nil {
			return Group{}, groupError(op, err)
		}
		return g.with(Group{}, m), nil
	}
}

func groupError(op fault.Call, err error) error {
	return &Error{Class: ErrRank, Op: string(op), Peer: ProcNull, Tag: -1, Got: -1, Want: -1, Err: err}
}

func triplets(rs []RankRange) []group.Triplet {
	ts := make([]group.Triplet, len(rs))
	for i, r := range rs {
		ts[i] = group.Triplet(r)
	}
	return ts
}
