// SPDX-License-Identifier: Apache-2.0

package head

import (
	"time"

	"gompi/internal/launch"
	"gompi/internal/wire"
)

// proc is what the head knows of one process of the job.
type proc struct {
	launch.Label
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
	if p.First {
		return
	}
	for i, q := range t.list {
		if q == p {
			t.list = append(t.list[:i], t.list[i+1:]...)
			return
		}
	}
}
