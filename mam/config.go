// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"strings"

	"gompi/internal/base/settings"
)

// Auto leaves a field of a Config to the module. It is the zero value of each.
const Auto = 0

// Process says which processes a change starts.
type Process uint8

// The process methods, by their published names.
const (
	Baseline Process = iota + 1 // all targets are started anew; all sources leave
	Merge                       // only missing targets are started; only surplus sources leave
)

// Spawn says how newcomers are started, as a set of strategies. No source starts a process. For
// the order, a group is the newcomers of a host: see sessions.Start. The strategies apply to
// changes that SetTarget or Targets asks for. Changes that others ask for start all newcomers at
// once.
//
// Auto is all at once, in the background. With strategies but without SpawnBackground all sources
// wait until the newcomers are ready, in the Checkpoint of rank 0 in which the change is granted.
// To make that possible each Checkpoint is a collective then, unless a change is delivered.
type Spawn uint8

// The spawn strategies. Multiple and Parallel start a group of newcomers on each host. Each group
// is a world of its own.
const (
	SpawnAll        Spawn = 1 << iota // all at once
	SpawnBackground                   // while sources compute (PTHREAD)
	SpawnSingle                       // rank 0 waits for it; the others learn of it when all are ready (SINGLE)
	SpawnInter                        // sources and targets keep an intercommunicator (INTERCOMM)
	SpawnMultiple                     // a group for each host (MULTIPLE)
	SpawnParallel                     // groups start groups (PARALLEL)
	SpawnSequential                   // one group after the other
)

// Placement says on which hosts newcomers start.
type Placement uint8

// The placements.
const (
	Spread  Placement = iota + 1 // the same number on each host
	Compact                      // one host after the other is filled
)

// Method says how distributed data goes from sources to targets.
type Method uint8

// The redistribution methods. The first four are published.
const (
	COL        Method = iota + 1 // Alltoallv over the merged communicator (BASELINE)
	P2P                          // point-to-point (POINT)
	RMALock                      // windows, an epoch for each source (RMA_LOCK)
	RMALockall                   // windows, one epoch (RMA_LOCKALL)
	Pull                         // targets read what sources have exposed; sources take no part
	InPlace                      // memory of the host that all map: nothing moves on a host
)

// Strategy says what sources do while constant data moves.
type Strategy uint8

// The redistribution strategies.
const (
	Blocking    Strategy = iota + 1 // they wait: data moves at the commit
	NonBlocking                     // they iterate; checkpoints test requests (CLEAR, WAIT_SOURCES)
	Thread                          // they iterate while a goroutine waits (PTHREAD)
	WaitDrains                      // they iterate until all targets have their data (WAIT_TARGETS)
)

// String returns the name in settings.
func (p Process) String() string { return nameOf(settings.MamProcess, int(p)) }

// String returns the name in settings.
func (p Placement) String() string { return nameOf(settings.MamPlacement, int(p)) }

// String returns the name in settings.
func (m Method) String() string { return nameOf(settings.MamMethod, int(m)) }

// String returns the name in settings.
func (s Strategy) String() string { return nameOf(settings.MamStrategy, int(s)) }

// String returns the names in settings, separated by commas.
func (s Spawn) String() string {
	if s == 0 {
		return settings.MamSpawn.Names[0]
	}
	var names []string
	for i, name := range settings.MamSpawn.Names[1:] {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

func nameOf(c settings.Choice, i int) string {
	if i < len(c.Names) {
		return c.Names[i]
	}
	return "?"
}

// with returns s with one more strategy, without those that exclude it: the last one wins.
func (s Spawn) with(t Spawn) Spawn {
	const groups = SpawnAll | SpawnSequential | SpawnMultiple | SpawnParallel
	switch {
	case t == SpawnParallel:
		s &^= SpawnSingle | groups
	case t&(SpawnSingle|SpawnMultiple) != 0:
		s &^= SpawnParallel
	}
	if t&groups != 0 {
		s &^= groups
	}
	return s | t
}

// Config says how changes of size are done. A zero field is Auto. It is the same on all ranks.
// Settings of gompirun and of the environment win over it (see Setting).
type Config struct {
	Process   Process
	Spawn     Spawn
	Placement Placement
	Method    Method
	Strategy  Strategy
	// Targets is the number of ranks to ask for at the first Checkpoint. 0: nothing is asked for.
	Targets int
}
