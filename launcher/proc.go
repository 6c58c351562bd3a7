// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"fmt"
	"time"

	"gompi/internal/control"
	"gompi/internal/wire"
)

// proc is one process of the job. The head owns it.
type proc struct {
	control.StartProc
	app   *app
	world *world
	cpus  cpus
	local int // its number among the living processes of the job on this host

	pid            int
	started        time.Time
	out, err       *source
	joined         bool
	finalized      bool
	exited, reaped bool
	lost           bool // what joined is gone, and the process runs on
	discarded      bool // started with one that could not be
}

// world is what was started together.
type world struct {
	first  bool // by the command line; else by a process of the job
	joined int  // how many have called Init
	// quit is the first process that exited with status 0 without Init.
	quit *proc
}

// name is how messages call a process.
func (p *proc) name() string {
	if p.world.first {
		return fmt.Sprintf("rank %d", p.Rank)
	}
	return fmt.Sprintf("spawned process %d (rank %d of %d)", p.Proc.Serial, p.Rank, p.Size)
}

// tag is what --tag puts before its lines.
func (p *proc) tag() string {
	if p.world.first {
		return fmt.Sprintf("[%d] ", p.Rank)
	}
	return fmt.Sprintf("[p%d.%d] ", p.Proc.Serial, p.Rank)
}

// outputFile is the name under --output DIR; stream is stdout or stderr.
func (p *proc) outputFile(stream string) string {
	if p.world.first {
		return fmt.Sprintf("rank.%d.%s", p.Rank, stream)
	}
	return fmt.Sprintf("proc.%d.%s", p.Proc.Serial, stream)
}

// table finds processes by their two names.
type table struct {
	list []*proc // in order of start
	byID map[wire.ProcID]*proc
	pids map[int]*proc
	live int // started and not exited

	locals numbers // of those that live or are to be started
}

func newTable() *table {
	return &table{byID: map[wire.ProcID]*proc{}, pids: map[int]*proc{}}
}

func (t *table) add(p *proc) {
	t.list = append(t.list, p)
	t.byID[p.Proc] = p
	p.local = t.locals.take()
}

func (t *table) started(p *proc, pid int) {
	p.pid, p.started = pid, time.Now()
	t.pids[pid] = p
	t.live++
}

func (t *table) ended(p *proc) {
	p.exited = true
	t.live--
	t.locals.put(p.local)
}

// forget is called when p is reaped, or cannot be started. What was spawned is
// dropped, so that a job may grow and shrink for ever.
func (t *table) forget(p *proc) {
	if !p.exited {
		t.locals.put(p.local)
	}
	p.reaped = true
	delete(t.pids, p.pid)
	delete(t.byID, p.Proc)
	if p.world.first {
		return
	}
	for i, q := range t.list {
		if q == p {
			t.list = append(t.list[:i], t.list[i+1:]...)
			return
		}
	}
}
