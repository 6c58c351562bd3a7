// SPDX-License-Identifier: Apache-2.0

// Package spawn implements the spawn strategies of MaM as pure functions: on which hosts
// newcomers start (Distribute), in which order and by which process (Schedule, Predecessors),
// and how their groups are joined to one (Tree, FirstRanks). See
// docs/design/030-malleability-module.md.
package spawn

import "fmt"

// Strategy is the order in which groups are started.
type Strategy uint8

// The strategies.
const (
	All        Strategy = iota // all groups at once
	Sequential                 // one group after the other
	Multiple                   // one group per host, all at once; each can be removed by itself
	Parallel                   // each running process starts the next group
)

// Grouped reports whether newcomers form a group per host, each with a world of its own.
func (s Strategy) Grouped() bool { return s == Multiple || s == Parallel }

// Known reports whether there is such a strategy.
func (s Strategy) Known() bool { return s <= Parallel }

// String returns the name in lower case.
func (s Strategy) String() string { return name(int(s), "all", "sequential", "multiple", "parallel") }

// Placement is the choice of hosts for newcomers.
type Placement uint8

// The placements.
const (
	Compact Placement = iota // fill the hosts one after the other
	Spread                   // put equal numbers on all hosts
)

// Known reports whether there is such a placement.
func (p Placement) Known() bool { return p <= Spread }

// String returns the name in lower case.
func (p Placement) String() string { return name(int(p), "compact", "spread") }

// name returns the name with index i, or "?".
func name(i int, names ...string) string {
	if i < len(names) {
		return names[i]
	}
	return "?"
}

// Distribute returns how many of n newcomers start on each host. free is the number of free
// slots of each host, negative if it already has more processes than slots. Processes beyond
// the slots go to the hosts with the least excess. Unlike the published host map, Spread starts
// all n processes if n is not a multiple of the number of hosts.
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

// Start is the launch of one group. All launches of a step are under way together.
type Start struct {
	Group, Step int
	// By is the group whose agent launches this group, and Rank the process of that group that does
	// it in the published form. By is -1 for the processes that were there before.
	By, Rank int
}

// Schedule returns the launches of groups of these sizes, when so many processes were there
// before. The head does the launches with By -1.
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

// parallel is the published recurrence, generalised to groups of any sizes. In each step every
// running process launches a group, in the order of processes. If I hosts have C processes
// each, and groups have C, then rank r of group g launches in step t the group I(1+C)^t - I +
// C(I+g) + r; g is -I for the processes that were there before.
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

// Predecessors returns, for each group of a schedule, the groups that must be up before it is
// launched: the group that launches it, and the group that the same process has launched in an
// earlier step.
func Predecessors(order []Start) [][]int {
	type launcher struct{ by, rank int }
	last := map[launcher]int{} // index of its last launch
	list := make([][]int, len(order))
	for i, s := range order {
		h := launcher{s.By, s.Rank}
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

// Connection is one connection of the tree that joins groups. It joins two groups, each with
// the groups that it was joined to before. The connections of a round do not wait for each
// other.
type Connection struct {
	Round           int
	Accept, Connect int // ids in this round; the joined group goes on with the id of Accept
}

// Tree returns the published binary tree of connections. While there is more than one group, of
// g groups with m = g/2 those with id < m accept, and those with id >= ceil(g/2) connect to
// g-id-1.
func Tree(groups int) (list []Connection) {
	for round := 0; groups > 1; round++ {
		for id := (groups + 1) / 2; id < groups; id++ {
			list = append(list, Connection{round, groups - id - 1, id})
		}
		groups = (groups + 1) / 2
	}
	return list
}

// FirstRanks returns the index of the first process of each group among all newcomers. The
// order is that of the groups, however they were joined.
func FirstRanks(sizes []int) []int {
	at := make([]int, len(sizes)+1)
	for g, n := range sizes {
		at[g+1] = at[g] + n
	}
	return at
}
