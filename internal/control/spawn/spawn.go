// SPDX-License-Identifier: Apache-2.0

// Package spawn says where newcomers start, in which groups, in which order and by whom,
// and how groups find each other: the spawn strategies of MaM as pure functions.
// docs/design/035-methods-and-strategies.md
package spawn

import "fmt"

// Strategy is in which order groups are started.
type Strategy uint8

// The strategies.
const (
	All        Strategy = iota // all groups at once
	Sequential                 // one group after the other
	Multiple                   // a group a host, all at once, each removable by itself
	Parallel                   // each process that is there starts the next group
)

// Grouped reports whether newcomers are a group a host, with a world of its own.
func (s Strategy) Grouped() bool { return s == Multiple || s == Parallel }

// Known reports whether there is such a strategy.
func (s Strategy) Known() bool { return s <= Parallel }

// String gives the name in lower case.
func (s Strategy) String() string { return name(int(s), "all", "sequential", "multiple", "parallel") }

// Placement is on which hosts newcomers start.
type Placement uint8

// The placements.
const (
	Compact Placement = iota // hosts are filled, one after the other
	Spread                   // as many on each
)

// Known reports whether there is such a placement.
func (p Placement) Known() bool { return p <= Spread }

// String gives the name in lower case.
func (p Placement) String() string { return name(int(p), "compact", "spread") }

func name(i int, names ...string) string {
	if i < len(names) {
		return names[i]
	}
	return "?"
}

// Place says how many of n newcomers start on each host, of which free says how many
// slots are left, less than 0 if there are more processes than slots already. What is
// beyond the slots goes where the fewest are beyond them. Spread leaves nobody out where n
// is no multiple of the hosts, as the published host map does.
func Distribute(how Placement, free []int, n int) ([]int, error) {
	if len(free) == 0 || n < 0 {
		return nil, fmt.Errorf("%d newcomers on %d hosts", n, len(free))
	}
	on := make([]int, len(free))
	left := n
	switch how {
	case Compact:
		for h, f := range free {
			on[h] = max(0, min(left, f))
			left -= on[h]
		}
	case Spread:
		for progress := true; left > 0 && progress; {
			progress = false
			for h, f := range free {
				if left > 0 && on[h] < f {
					on[h], left, progress = on[h]+1, left-1, true
				}
			}
		}
	}
	for ; left > 0; left-- {
		least := 0
		for h := range on {
			if on[h]-free[h] < on[least]-free[least] {
				least = h
			}
		}
		on[least]++
	}
	return on, nil
}

// Start is one launch: of the group with a number, in a step, in which all launches are
// under way together.
type Start struct {
	Group, Step int
	// By is the group whose agent launches it, Rank which of its processes does so in
	// the published form; -1 stands for those that were there before.
	By, Rank int
}

// Order is the launches of groups of so many processes, where so many were there before.
// The head does those of By -1.
func Schedule(how Strategy, before int, sizes []int) ([]Start, error) {
	for g, n := range sizes {
		if n < 1 || before < 1 {
			return nil, fmt.Errorf("group %d of %d has %d processes, %d were there before", g, len(sizes), n, before)
		}
	}
	list := make([]Start, 0, len(sizes))
	if how == Parallel {
		return parallel(list, before, sizes), nil
	}
	for g := range sizes {
		s := Start{Group: g, By: -1}
		if how == Sequential {
			s.Step = g
		}
		list = append(list, s)
	}
	return list, nil
}

// parallel is the published recurrence, for groups of any sizes: in each step every
// process that is there launches a group, in the order of processes. Where I hosts have C
// processes each, and groups C, rank r of group g launches in step t the group
// I(1+C)^t - I + C(I+g) + r, g being -I of those that were there before.
func parallel(list []Start, before int, sizes []int) []Start {
	for step := 0; len(list) < len(sizes); step++ {
		there := len(list)
		for rank := 0; rank < before && len(list) < len(sizes); rank++ {
			list = append(list, Start{Group: len(list), Step: step, By: -1, Rank: rank})
		}
		for g := 0; g < there; g++ {
			for rank := 0; rank < sizes[g] && len(list) < len(sizes); rank++ {
				list = append(list, Start{Group: len(list), Step: step, By: g, Rank: rank})
			}
		}
	}
	return list
}

// After is which groups have to be up before each of an order is launched: the one that
// launches it, and the one that the same process has launched in a step before.
func Predecessors(order []Start) [][]int {
	type hand struct{ by, rank int }
	last := map[hand]int{} // of order
	list := make([][]int, len(order))
	for i, s := range order {
		h := hand{s.By, s.Rank}
		if s.By >= 0 {
			list[s.Group] = append(list[s.Group], s.By)
		}
		if at, ok := last[h]; ok && order[at].Step < s.Step {
			list[s.Group] = append(list[s.Group], order[at].Group)
		}
		last[h] = i
	}
	return list
}

// Join is one connection of the tree by which groups become one: of two groups that are
// what they have been joined to before, in rounds that do not wait for each other's.
type Connection struct {
	Round           int
	Accept, Connect int // ids in this round: what connects goes on with the id of what accepts
}

// Tree is the published binary tree of connections: while there are more than one, of g
// groups with m = g/2, id < m accepts, id >= ceil(g/2) connects to g-id-1.
func Tree(groups int) (list []Connection) {
	for round := 0; groups > 1; round++ {
		for id := (groups + 1) / 2; id < groups; id++ {
			list = append(list, Connection{round, groups - id - 1, id})
		}
		groups = (groups + 1) / 2
	}
	return list
}

// Ranks are where the processes of each group begin among all newcomers: in the order of
// groups, however they were joined.
func FirstRanks(sizes []int) []int {
	at := make([]int, len(sizes)+1)
	for g, n := range sizes {
		at[g+1] = at[g] + n
	}
	return at
}
