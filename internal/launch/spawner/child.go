// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/host/cpus"
	"gompi/internal/launch"
)

// child is a process that the agent has started, or is about to.
type child struct {
	launch.Start
	cpus   cpus.Set
	local  int           // its number among the living processes of the job on this host
	batch  *batch        // with which it is being started
	early  []unix.Signal // that came before it was
	tag    string
	spread bool // is to be let go soon

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

func (t *childTable) began(c *child, n newborn) {
	c.pid, c.out, c.err, c.cpus = n.pid, n.out, n.err, n.cpus
	t.pids[c.pid] = c
	t.live++
}

// signal is for the group of c, if need be when it is there.
func (c *child) signal(s unix.Signal) {
	switch {
	case c.exited:
	case c.pid == 0:
		c.early = append(c.early, s)
	default:
		unix.Kill(-c.pid, s)
	}
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
