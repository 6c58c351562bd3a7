// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"fmt"
	"slices"

	"gompi/collectives"
	"gompi/collectives/flat"
	"gompi/collectives/inter"
	"gompi/collectives/twolevel"
)

// All returns every algorithm that has a schedule, those of one operation
// together.
func All() []*collectives.Algorithm {
	lists := scheduled()
	all := slices.Concat(lists[:]...)
	slices.SortStableFunc(all, func(x, y *collectives.Algorithm) int { return cmp.Compare(x.Op, y.Op) })
	return all
}

// scheduled are all algorithms that have a schedule, by family.
func scheduled() [3][]*collectives.Algorithm {
	return [...][]*collectives.Algorithm{flat.All(), twolevel.All(), inter.All()}
}

// ByName returns the algorithm of that name.
func ByName(op collectives.Op, name string) (*collectives.Algorithm, error) {
	return newIndex().find(op, name)
}

// index says between which places of each list the algorithms of an operation
// lie. Each process makes a table when it starts.
type index struct {
	lists    [4][]*collectives.Algorithm
	from, to [4][collectives.NumOps]int
}

func newIndex() *index {
	x := &index{lists: [...][]*collectives.Algorithm{collectives.Shared(), flat.All(), twolevel.All(), inter.All()}}
	for i, list := range x.lists {
		for k, g := range list {
			if x.to[i][g.Op] == 0 {
				x.from[i][g.Op] = k
			}
			x.to[i][g.Op] = k + 1
		}
	}
	return x
}

func (x *index) find(op collectives.Op, name string) (*collectives.Algorithm, error) {
	for i, list := range x.lists {
		if op >= collectives.NumOps {
			break
		}
		for _, g := range list[x.from[i][op]:x.to[i][op]] {
			if g.Op == op && g.Name == name {
				return g, nil
			}
		}
	}
	known := ""
	for _, list := range x.lists {
		for _, g := range list {
			if g.Op == op {
				known += " " + g.Name
			}
		}
	}
	return nil, fmt.Errorf("no algorithm %q for %v; there are:%s", name, op, known)
}
