// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"slices"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/launch"
)

// proc is what the head knows of one process of the job.
type proc struct {
	launch.Label
	id         wire.ProcID
	host       uint32
	came       launch.Role // how: Member, Spawned or New
	rank, size int         // in its world
	was        int         // its last rank in the main set
	world      *world

	pid       int // for people
	started   time.Time
	joined    bool
	finalized bool
	exited    bool
	lost      bool // what joined is gone, and the process runs on
	reaped    bool

	awaited   bool     // who has started it hears how it ends; see StartProc
	undecided bool     // a newcomer of which is not known whether it is to stay
	failure   *failure // how it failed meanwhile
	well      bool     // has ended in order
	unwanted  string   // why, if it is not to stay
	leaves    bool     // by a change that is committed
	goes      bool     // has ended, and by a change that may have been
}

// failure is the end of a process that fails the job.
type failure struct {
	line string
	code int
}

func newProc(s *protocol.StartProc, came launch.Role, w *world) *proc {
	return &proc{
		Label: launch.Label{Role: came, Serial: s.Proc.Serial, Rank: s.Rank, Size: s.Size},
		id:    s.Proc, host: s.Host, came: came, rank: s.Rank, size: s.Size, was: s.Rank, world: w, awaited: s.Awaited, undecided: came == launch.New,
	}
}

// first reports whether the command line started p.
func (p *proc) first() bool { return p.came == launch.Member }

// outside is what a process is called that is not in the main set.
func (p *proc) outside() launch.Label {
	return launch.Label{Role: launch.Outside, Serial: p.Serial, Rank: p.rank, Size: p.size}
}

// counts reports whether the end of p is one of the job's.
func (p *proc) counts() bool { return p.unwanted == "" && !p.undecided }

// unwant: however p ends, it is no failure.
func (p *proc) unwant(why string) { p.undecided, p.failure, p.unwanted = false, nil, why }

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

// forget is called when p is reaped, or cannot be started. What the command line
// did not start is dropped, so that a job may grow and shrink for ever. For a
// newcomer, and for a process that may have left, it first waits until the head knows
// whether the process belonged to the job.
func (t *table) forget(p *proc) {
	if p.reaped = true; (p.undecided || p.goes) && p.pid != 0 {
		return
	}
	delete(t.byID, p.id)
	if p.first() {
		return
	}
	if i := slices.Index(t.list, p); i >= 0 {
		t.list = slices.Delete(t.list, i, i+1)
	}
}
