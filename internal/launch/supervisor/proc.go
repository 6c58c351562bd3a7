// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"slices"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/launch"
)

// proc is the supervisor's record of one process of the job.
type proc struct {
	launch.Label
	id         wire.ProcID
	host       uint32
	origin     launch.Role // how it came: Member, Spawned, New or Spare; it never changes
	rank, size int         // in the world it was started with
	lastRank   int         // in the main set
	world      *world

	pid       int // 0 until the process runs; for people only
	started   time.Time
	joined    bool // it has called Init
	finalized bool // it has called Finalize
	exited    bool
	reaped    bool // its pid is free, or it could not be started
	lost      bool // the program that called Init has ended, but the pid runs on

	// awaited: the process that started this one is told its exit status (StartProc).
	awaited bool
	// undecided: a newcomer whose change is neither committed nor rolled back.
	undecided bool
	// maybeLeft: it has ended, and a change that may be committed lets it leave.
	maybeLeft bool
	// failure is kept back while the process is undecided or maybeLeft.
	failure *failure
	// cleanExit: it has ended in order.
	cleanExit bool
	// leftByChange: it leaves by a committed change.
	leftByChange bool
	// unwanted is the reason why it must end; "" if it may run.
	unwanted string
}

// failure is an end of a process that fails the job.
type failure struct {
	line string
	code int
}

func newProc(s *protocol.StartProc, origin launch.Role, w *world) *proc {
	return &proc{
		Label:     launch.Label{Role: origin, Serial: s.Proc.Serial, Rank: s.Rank, Size: s.Size},
		id:        s.Proc,
		host:      s.Host,
		origin:    origin,
		rank:      s.Rank,
		size:      s.Size,
		lastRank:  s.Rank,
		world:     w,
		awaited:   s.Awaited,
		undecided: origin == launch.New,
	}
}

// first reports whether the command line started p.
func (p *proc) first() bool { return p.origin == launch.Member }

// outside returns the label of a process that is not in the main set.
func (p *proc) outside() launch.Label {
	return launch.Label{Role: launch.Outside, Serial: p.Serial, Rank: p.rank, Size: p.size}
}

// counts reports whether the end of p is an end of the job's.
func (p *proc) counts() bool { return p.unwanted == "" && !p.undecided }

// dismiss marks p as unwanted: however it ends, that is no failure.
func (p *proc) dismiss(why string) { p.undecided, p.failure, p.unwanted = false, nil, why }

// world is a group of processes that were started together.
type world struct {
	joined int // number of processes that have called Init
	// quitter is the first process that exited with status 0 without Init.
	quitter *proc
}

// table finds the processes that are not reaped yet, and all those of the command line.
type table struct {
	list []*proc // in order of start
	byID map[wire.ProcID]*proc
	live int // number that are started and have not exited
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

// forget is called when p is reaped, or cannot be started. It drops processes that the
// command line did not start, so that a job may grow and shrink forever. A newcomer, and a
// process that may have left, stay until it is known whether the process belonged to the
// job.
func (t *table) forget(p *proc) {
	if p.reaped = true; (p.undecided || p.maybeLeft) && p.pid != 0 {
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
