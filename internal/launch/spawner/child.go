// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/host/cpus"
	"gompi/internal/launch"
)

// child is a process that the spawner has started, or is about to start.
type child struct {
	launch.Start
	cpus    cpus.Set
	local   int           // its index among the live processes of the job on this host
	batch   *batch        // the start under way that it belongs to; nil afterwards
	pending []unix.Signal // signals to send once it is forked
	tag     string
	spread  bool // its binding is released soon

	pid      int
	out, err *source
	exited   bool
	lost     bool // the program that joined has ended, but the pid runs on
}

// childTable finds children by id and by pid, until they are reaped.
type childTable struct {
	byID   map[wire.ProcID]*child
	pids   map[int]*child
	live   int     // number that are started and have not exited
	locals numbers // indices of children that live or are to be started
}

func newChildTable() childTable {
	return childTable{byID: map[wire.ProcID]*child{}, pids: map[int]*child{}}
}

func (t *childTable) add(s launch.Start) *child {
	s.Argv = nil // not needed any more
	c := &child{Start: s, local: t.locals.take()}
	t.byID[s.Proc] = c
	return c
}

func (t *childTable) began(c *child, n forkedChild) {
	c.pid, c.out, c.err, c.cpus = n.pid, n.out, n.err, n.cpus
	t.pids[c.pid] = c
	t.live++
}

// signal sends a signal to the group of c, or keeps it until c is forked.
func (c *child) signal(s unix.Signal) {
	switch {
	case c.exited:
	case c.pid == 0:
		c.pending = append(c.pending, s)
	default:
		unix.Kill(-c.pid, s)
	}
}

func (t *childTable) ended(c *child) {
	c.exited = true
	t.live--
	t.locals.put(c.local)
}

// forget removes a child that is reaped, or cannot be started.
func (t *childTable) forget(c *child) {
	if !c.exited {
		t.locals.put(c.local)
	}
	if c.pid != 0 {
		delete(t.pids, c.pid)
	}
	delete(t.byID, c.Proc)
}
