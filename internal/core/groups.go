// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"slices"

	"gompi/internal/base/fault"
	"gompi/internal/base/group"
	"gompi/internal/base/wire"
)

// Groups are the processes of a communicator.
type Groups struct {
	Local  wire.Members
	Remote wire.Members // empty in an intracommunicator
	Low    bool         // Local comes first in the merged communicator
}

// Groups returns the groups of c.
func (c *Comm) Groups() Groups { return Groups{c.Ctx.Members, c.Ctx.Remote, c.Low} }

// Facing returns the groups of an intercommunicator; they must be disjoint and not empty.
// The group with the lower first process is the low one.
func Facing(local, remote wire.Members) (Groups, *fault.Fault) {
	if remote.Len() == 0 {
		return Groups{}, wrong(fault.Arg, "the remote group is empty")
	}
	if both := group.Intersection(local, remote); both.Len() > 0 {
		return Groups{}, wrong(fault.Rank, "process %v is in both groups", both.At(0))
	}
	return Groups{local, remote, local.At(0).Before(remote.At(0))}, nil
}

// lowFirst returns both groups, the low one first.
func (g *Groups) lowFirst() (first, second wire.Members) {
	if g.Low {
		return g.Local, g.Remote
	}
	return g.Remote, g.Local
}

// Merged returns the group of the merged communicator, the low group last or first.
func (g Groups) Merged(lowLast bool) Groups {
	first, second := g.lowFirst()
	if lowLast {
		first, second = second, first
	}
	return Groups{Local: group.Union(first, second)}
}

// together returns all processes of both groups, the low group first.
func (g *Groups) together() wire.Members { return group.Union(g.lowFirst()) }

// Chosen returns the groups of the communicator of one color, empty for a color below 0. The
// block that their first process offered becomes the communicator's.
func (a *Agreed) Chosen(all []Choice, color int) Groups {
	c := a.by
	m := c.Ctx.Members
	if c.Both == nil {
		g := Groups{Local: pick(m, all, color)}
		if g.Local.Len() > 0 {
			a.Lend(all, m.Index(g.Local.At(0)))
		}
		return g
	}
	local, remote := all[:c.LowSize()], all[c.LowSize():]
	if !c.Low {
		local, remote = remote, local
	}
	return Groups{pick(m, local, color), pick(c.Ctx.Remote, remote, color), c.Low}
}

// pick returns the processes of one color in the order of their keys, and with equal keys in
// the order of m.
func pick(m wire.Members, all []Choice, color int) wire.Members {
	var ranks []int
	for r, x := range all {
		if color >= 0 && x.Color == int64(color) {
			ranks = append(ranks, r)
		}
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(all[a].Key, all[b].Key) })
	var b wire.MembersBuilder
	for _, r := range ranks {
		b.Add(wire.Range{First: m.At(r), Count: 1})
	}
	return b.Members()
}
