// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/launch"
)

const (
	// refillAfter is the delay before spares are replaced, after a change or the end of a
	// spare: the change comes first.
	refillAfter = 200 * time.Millisecond
	// spareGrace is how long spares have to end when the job does.
	spareGrace = 500 * time.Millisecond
	// maxSpareFailures bounds spares that end by themselves: their program does not call
	// Init, or exits soon.
	maxSpareFailures = 8
)

// spares counts the processes that wait in Init until a change takes them. Until then
// their ids belong to no job, and their ends are not reported.
type spares struct {
	total   int // run or are being started
	running int // run
	filling bool
	failed  int
	ended   bool
}

// fill starts spares until there are as many as wanted.
func (sv *Supervisor) fill() {
	s := &sv.spares
	n := sv.o.Spare - s.total
	if n <= 0 || s.filling || s.failed > maxSpareFailures || sv.ending || sv.drained || sv.interrupts > 0 {
		return
	}
	s.filling = true
	argv := sv.o.Apps[0].Argv
	go func() {
		list, err := sv.control.AddSpares(argv, n) // it prepares memory, which takes time
		sv.Post(func() {
			s.filling = false
			switch {
			case err != nil:
				s.failed++
				sv.fillIn(refillAfter)
				return
			case sv.ending || sv.drained:
				for _, p := range list {
					sv.control.SpareGone(p.Proc)
				}
				return
			}
			s.total += len(list)
			sv.start(list, make([]int, len(list)), launch.Spare, func(procs []*proc, err error) {
				for _, p := range procs {
					if p.pid == 0 {
						sv.procs.forget(p)
						sv.spareGone(p)
					}
				}
			})
		})
	}()
}

func (sv *Supervisor) fillIn(d time.Duration) {
	if sv.o.Spare > 0 {
		time.AfterFunc(d, func() { sv.Post(sv.fill) })
	}
}

// spareRuns is called when p runs: from now on a change may take it.
func (sv *Supervisor) spareRuns(p *proc) {
	sv.spares.running++
	sv.control.SpareRuns(p.id, p.pid, sv.o.Apps[0].Argv)
}

// spareGone is called when p has ended, or was not started. Another one replaces it.
func (sv *Supervisor) spareGone(p *proc) {
	sv.spares.total--
	sv.spares.failed++
	sv.control.SpareGone(p.id)
	sv.fillIn(refillAfter)
}

var errSpareEnded = errors.New("a spare process has ended")

// takeSpare makes a spare the newcomer s. It returns nil if the spare has ended.
func (sv *Supervisor) takeSpare(s *protocol.StartProc, role launch.Role, w *world) *proc {
	old := wire.ProcID{Serial: s.Spare}
	p := sv.procs.byID[old]
	if p == nil || p.exited || p.pid == 0 {
		return nil
	}
	delete(sv.procs.byID, old)
	pid := p.pid
	*p = *newProc(s, role, w)
	p.pid, p.started = pid, time.Now()
	sv.procs.byID[p.id] = p
	sv.spares.total--
	sv.spares.running--
	sv.on(p).Adopt(old, launch.Start{StartProc: *s, Label: p.Label})
	sv.catchUp(p)
	return p
}

// endSpares ends the spares when no other process is left.
func (sv *Supervisor) endSpares() {
	if sv.spares.ended {
		return
	}
	sv.spares.ended, sv.ending = true, true
	sv.control.Ending("it is over")
	var list []*proc
	for _, p := range sv.procs.list {
		if p.origin == launch.Spare {
			list = append(list, p)
		}
	}
	sv.killIn(spareGrace, list)
}
