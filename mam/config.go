// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"strings"

	"gompi/internal/base/settings"
)

// Auto leaves a field of a Config to the module. It is the zero value of each.
const Auto = 0

// Process is which processes a change starts.
type Process uint8

// The process methods, by their published names.
const (
	Baseline Process = iota + 1 // all targets anew; all sources leave
	Merge                       // those that are missing; only who is too many leaves
)

// Spawn is how newcomers are started: several of these together. Sources start none of
// them. In what is said of the order a group is the newcomers of a host: see
// sessions.Start. It counts for changes that SetTarget or Targets asks for; what others ask
// for starts all at once.
//
// Auto is all at once, in the background. What is said without SpawnBackground is not: all
// sources wait, in the Checkpoint of rank 0 in which the change is granted, until
// newcomers are ready. For that each Checkpoint, outside a change that is handed out, is a
// collective of its own.
type Spawn uint8

// The spawn strategies. Multiple and Parallel start a group of newcomers on each host,
// which is a world of its own.
const (
	SpawnAll        Spawn = 1 << iota // all at once
	SpawnBackground                   // while sources compute (PTHREAD)
	SpawnSingle                       // rank 0 waits for it, the others learn of it when all are ready (SINGLE)
	SpawnInter                        // sources and targets keep an intercommunicator (INTERCOMM)
	SpawnMultiple                     // a group a host (MULTIPLE)
	SpawnParallel                     // groups start groups (PARALLEL)
	SpawnSequential                   // one group after the other
)

// Placement is on which hosts newcomers start.
type Placement uint8

// The placements.
const (
	Spread  Placement = iota + 1 // as many on each host
	Compact                      // hosts are filled one after the other
)

// Method is how distributed data goes from sources to targets.
type Method uint8

// The redistribution methods. The first four are published.
const (
	COL        Method = iota + 1 // Alltoallv over both (BASELINE)
	P2P                          // point-to-point (POINT)
	RMALock                      // windows, an epoch for each source (RMA_LOCK)
	RMALockall                   // windows, one epoch (RMA_LOCKALL)
	Pull                         // targets read what sources have exposed, without them
	InPlace                      // memory of the host that all map: nothing moves
)

// Strategy is what sources do while constant data moves.
type Strategy uint8

// The redistribution strategies.
const (
	Blocking    Strategy = iota + 1 // they wait: data moves at the commit
	NonBlocking                     // they iterate; checkpoints test requests (CLEAR, WAIT_SOURCES)
	Thread                          // they iterate beside a goroutine that waits (PTHREAD)
	WaitDrains                      // they iterate until all targets have their data (WAIT_TARGETS)
)

// String gives the name that settings have.
func (p Process) String() string { return nameOf(settings.MamProcess, int(p)) }

// String gives the name that settings have.
func (p Placement) String() string { return nameOf(settings.MamPlacement, int(p)) }

// String gives the name that settings have.
func (m Method) String() string { return nameOf(settings.MamMethod, int(m)) }

// String gives the name that settings have.
func (s Strategy) String() string { return nameOf(settings.MamStrategy, int(s)) }

// String gives the names that settings have, separated by commas.
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

// with is s and one more strategy, without those that do not go with it: the last one
// wins.
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

// Config is how changes of size are done. A zero field is Auto. It is the same on all
// ranks; settings of gompirun and of the environment win over it (see Setting).
type Config struct {
	Process   Process
	Spawn     Spawn
	Placement Placement
	Method    Method
	Strategy  Strategy
	// Targets is how many ranks there are to be, to be asked for at the first
	// Checkpoint; 0: nothing is asked for.
	Targets int
}
