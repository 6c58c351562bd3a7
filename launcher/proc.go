// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"fmt"
	"time"

	"gompi/internal/wire"
)

// proc is what the head knows of one process of the job.
type proc struct {
	label
	id    wire.ProcID
	world *world

	pid       int // for people
	started   time.Time
	joined    bool
	finalized bool
	exited    bool
	lost      bool // what joined is gone, and the process runs on
	discarded bool // started with one that could not be
}

// world is what was started together.
type world struct {
	joined int // how many have called Init
	// quit is the first process that exited with status 0 without Init.
	quit *proc
}

// label is what people know a process by.
type label struct {
	first      bool // started by the command line; else by a process of the job
	serial     uint32
	rank, size int // in its world
}

// name is how messages call a process.
func (l label) name() string {
	if l.first {
		return fmt.Sprintf("rank %d", l.rank)
	}
	return fmt.Sprintf("spawned process %d (rank %d of %d)", l.serial, l.rank, l.size)
}

// tag is what --tag puts before its lines.
func (l label) tag() string {
	if l.first {
		return fmt.Sprintf("[%d] ", l.rank)
	}
	return fmt.Sprintf("[p%d.%d] ", l.serial, l.rank)
}

// outputFile is the name under --output DIR; stream is stdout or stderr.
func (l label) outputFile(stream string) string {
	if l.first {
		return fmt.Sprintf("rank.%d.%s", l.rank, stream)
	}
	return fmt.Sprintf("proc.%d.%s", l.serial, stream)
}

// table finds the processes that are not reaped yet, and those that the command
// line started.
type table struct {
	list []*proc // in order of start
	byID map[wire.ProcID]*proc
	live int // started and not exited
}

func newTable() *table { return &table{byID: map[wire.ProcID]*proc{}} }

func (t *table) add(p *proc) {
	t.list = append(t.list, p)
	t.byID[p.id] = p
}

func (t *table) started(p *proc, pid int) {
	p.pid, p.started = pid, time.Now()
	t.live++
}

func (t *table) ended(p *proc) {
	p.exited = true
	t.live--
}

// forget is called when p is reaped, or cannot be started. What was spawned is
// dropped, so that a job may grow and shrink for ever.
func (t *table) forget(p *proc) {
	delete(t.byID, p.id)
	if p.first {
		return
	}
	for i, q := range t.list {
		if q == p {
			t.list = append(t.list[:i], t.list[i+1:]...)
			return
		}
	}
}
