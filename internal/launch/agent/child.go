// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"gompi/internal/launch"
	"gompi/internal/launch/cpus"
	"gompi/internal/wire"
)

// child is a process that the agent has started, or is about to.
type child struct {
	launch.Start
	cpus  cpus.Set
	local int // its number among the living processes of the job on this host

	pid      int
	out, err *source
	exited   bool
	lost     bool // what joined is gone, and the process runs on
}

// childTable finds those of an agent by their two names, until they are reaped.
type childTable struct {
	byID   map[wire.ProcID]*child
	pids   map[int]*child
	live   int     // started and not exited
	locals numbers // of those that live or are to be started
}

func newChildTable() childTable {
	return childTable{byID: map[wire.ProcID]*child{}, pids: map[int]*child{}}
}

func (t *childTable) add(s launch.Start) *child {
	s.Argv = nil // who reads it has it
	c := &child{Start: s, local: t.locals.take()}
	t.byID[s.Proc] = c
	return c
}

func (t *childTable) began(c *child, pid int) {
	c.pid = pid
	t.pids[pid] = c
	t.live++
}

func (t *childTable) ended(c *child) {
	c.exited = true
	t.live--
	t.locals.put(c.local)
}

// forget is called when c is reaped, or cannot be started.
func (t *childTable) forget(c *child) {
	if !c.exited {
		t.locals.put(c.local)
	}
	if c.pid != 0 {
		delete(t.pids, c.pid)
	}
	delete(t.byID, c.Proc)
}
