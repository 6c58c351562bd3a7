// SPDX-License-Identifier: Apache-2.0

package testlab

import "slices"

// Maker is how a communicator is made.
type Maker uint8

// The ways to make a communicator.
const (
	Dup Maker = iota
	Idup
	Split       // colors are the indexes of Groups, keys the places in them
	Create      // each rank gives its own of Groups
	CreateGroup // likewise, and only members call it
	CommFromGroup
	IntercommCreate
	IntercommFromGroups
	IntercommMerge // the first group first
	Grid           // CartCreate of the first ranks
	Graph          // DistGraphCreateAdjacent
	numMakers
)

var makerNames = [...]string{
	Dup: "Dup", Idup: "Idup", Split: "Split", Create: "Create", CreateGroup: "CreateGroup", CommFromGroup: "CommFromGroup",
	IntercommCreate: "IntercommCreate", IntercommFromGroups: "IntercommCreateFromGroups", IntercommMerge: "IntercommMerge",
	Grid: "CartCreate", Graph: "DistGraphCreateAdjacent",
}

// String is the name of the call.
func (m Maker) String() string { return makerNames[m] }

// Layout lists the members of a communicator. One ID stands for several communicators that
// were made at once and have no process in common. Each of Groups is one of
// them, by ranks of World; of intercommunicators 2i and 2i+1 are the two groups
// of one.
type Layout struct {
	Groups [][]int
	Inter  bool
}

// Layout is that of a communicator.
func (p *Program) Layout(comm int) Layout {
	if comm < FirstEvent {
		all := make([]int, p.Ranks)
		for r := range all {
			all[r] = r
		}
		return Layout{Groups: [][]int{all}}
	}
	e := p.event(comm)
	inter := e.How == IntercommCreate || e.How == IntercommFromGroups
	if e.How == Dup || e.How == Idup {
		inter = p.Layout(e.Comm).Inter
	}
	return Layout{e.Groups, inter}
}

// Place is where a process is in a communicator. Groups are by ranks of World.
type Place struct {
	Local  []int
	Remote []int // nil in an intracommunicator
	Rank   int
	Side   int // 0 or 1: which group of an intercommunicator
}

// Peers lists the destinations and the sources of messages, by rank.
func (pl Place) Peers() []int {
	if pl.Remote != nil {
		return pl.Remote
	}
	return pl.Local
}

// Place finds a rank of World; ok is false if it is not in the communicator.
func (l Layout) Place(rank int) (pl Place, ok bool) {
	for i, g := range l.Groups {
		if k := slices.Index(g, rank); k >= 0 {
			pl = Place{Local: g, Rank: k}
			if l.Inter {
				pl.Remote, pl.Side = l.Groups[i^1], i&1
			}
			return pl, true
		}
	}
	return pl, false
}

func (l Layout) has(rank int) bool {
	_, ok := l.Place(rank)
	return ok
}

// makes reports whether a rank takes part in making a communicator out of from.
func (e *Event) makes(from Layout, rank int) bool {
	if e.How == Split || e.How == Create || e.How == Grid {
		return from.has(rank)
	}
	return Layout{Groups: e.Groups}.has(rank)
}
