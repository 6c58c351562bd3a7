// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"fmt"
	"iter"
	"slices"

	"gompi/mpi"
)

// members says who takes part in a reconfiguration. Three numberings occur: ranks before the
// change, ranks after it, and ranks in the merged communicator. That has the sources that
// live, in their order, and the newcomers behind them.
type members struct {
	from []int // ranks in the merged communicator by ranks before the change; -1: it has died
	to   []int // ranks in the merged communicator by ranks after the change
	stay []int // ranks before the change of the first targets
	old  int   // this process's rank before the change; -1: it is no source
	new  int   // this process's rank after the change; -1: it is no target
}

// findMembers finds the members of a change with ns sources.
func (rc *reconfiguration) findMembers(ns int) error {
	if rc.change.Result == "" {
		return rc.m.refuse("Checkpoint", mpi.ErrArg, fmt.Errorf("a change of the kind %v has no result to go on with", rc.change.Kind()))
	}
	stay, leave := rc.change.Ranks()
	result, err := rc.m.s.Group(rc.change.Result)
	if err != nil {
		return err
	}
	nd := result.Size()
	living := append(slices.Clone(stay), leave...)
	slices.Sort(living)
	if len(living) > ns || len(stay) > nd || len(living) > 0 && living[len(living)-1] >= ns {
		return fmt.Errorf("mam: of %d sources %v stay and %v leave; %d targets", ns, stay, leave, nd)
	}
	rc.stay, rc.new = stay, result.Rank()
	rc.times.NS, rc.times.ND = ns, nd
	rc.from, rc.to = make([]int, ns), make([]int, nd)
	for s := range rc.from {
		rc.from[s] = slices.Index(living, s)
	}
	for d := range rc.to {
		if d < len(stay) {
			rc.to[d] = rc.from[stay[d]]
		} else {
			rc.to[d] = len(living) + d - len(stay)
		}
	}
	return nil
}

// dead returns the sources that have died.
func (m *members) dead() (list []int) {
	for s, at := range m.from {
		if at < 0 {
			list = append(list, s)
		}
	}
	return list
}

// sources returns the number of sources that live.
func (m *members) sources() int { return len(m.from) - len(m.dead()) }

// newcomers returns the number of targets that are no sources.
func (m *members) newcomers() int { return len(m.to) - len(m.stay) }

// first returns the rank of the first source in the merged communicator.
func (m *members) first() int { return 0 }

// role returns the role of this process.
func (m *members) role() Role {
	switch {
	case m.old < 0:
		return NewRank
	case m.new < 0:
		return Leaver
	}
	return Continue
}

// newcomerSources returns the newcomers, by their rank after the change, and for each the
// source, by its rank in the merged communicator, that does for it what any source can: the
// k-th source for the k-th newcomer, modulo the number of sources.
func (m *members) newcomerSources() iter.Seq2[int, int] {
	return func(yield func(d, source int) bool) {
		sources := m.sources() // the first ranks of the merged communicator
		for d := len(m.stay); d < len(m.to) && yield(d, (d-len(m.stay))%sources); d++ {
		}
	}
}

// replicaSource returns the source, by its rank before the change, from which this newcomer
// gets replicated data: the source of newcomerSources.
func (m *members) replicaSource() int {
	at := (m.new - len(m.stay)) % m.sources()
	for s, k := range m.from {
		if k == at {
			return s
		}
	}
	panic("gompi: BUG: no source is left")
}
