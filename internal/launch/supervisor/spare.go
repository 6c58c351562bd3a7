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
	// refillAfter is how long after a change spares are replaced: the change comes
	// first. It is also how long one that has ended is.
	refillAfter = 200 * time.Millisecond
	// spareGrace is how long spares have to end when the job does.
	spareGrace = 500 * time.Millisecond
	// maxSpareFailures is how many may end by themselves: the program does not call
	// Init, or not for long.
	maxSpareFailures = 8
)

// spares are processes that wait in Init for a change to take them. Until then their
// names are of no job, and their ends are nobody's business.
type spares struct {
	live    int // run or are being started
	up      int // run
	filling bool
	failed  int
	ended   bool
}

// fill starts as many spares as are missing.
func (h *Head) fill() {
	s := &h.spares
	n := h.o.Spare - s.live
	if n <= 0 || s.filling || s.failed > maxSpareFailures || h.ending || h.drained || h.interrupt > 0 {
		return
	}
	s.filling = true
	argv := h.o.Apps[0].Argv
	go func() {
		list, err := h.server.AddSpares(argv, n) // memory is slow
		h.Post(func() {
			s.filling = false
			switch {
			case err != nil:
				s.failed++
				h.fillIn(refillAfter)
				return
			case h.ending || h.drained:
				for _, p := range list {
					h.server.SpareGone(p.Proc)
				}
				return
			}
			s.live += len(list)
			h.start(list, make([]int, len(list)), launch.Spare, func(procs []*proc, err error) {
				for _, p := range procs {
					if p.pid == 0 {
						h.procs.forget(p)
						h.spareGone(p)
					}
				}
			})
		})
	}()
}

func (h *Head) fillIn(d time.Duration) {
	if h.o.Spare > 0 {
		time.AfterFunc(d, func() { h.Post(h.fill) })
	}
}

// spareRuns: a change may take p.
func (h *Head) spareRuns(p *proc) {
	h.spares.up++
	h.server.SpareRuns(p.id, p.pid, h.o.Apps[0].Argv)
}

// spareGone: p has ended, or was not started. Another takes its place.
func (h *Head) spareGone(p *proc) {
	h.spares.live--
	h.spares.failed++
	h.server.SpareGone(p.id)
	h.fillIn(refillAfter)
}

var errSpareEnded = errors.New("a spare process has ended")

// takeSpare makes a spare the process s; nil: it has ended.
func (h *Head) takeSpare(s *protocol.StartProc, role launch.Role, w *world) *proc {
	old := wire.ProcID{Serial: s.Spare}
	p := h.procs.byID[old]
	if p == nil || p.exited || p.pid == 0 {
		return nil
	}
	delete(h.procs.byID, old)
	pid := p.pid
	*p = *newProc(s, role, w)
	p.pid, p.started = pid, time.Now()
	h.procs.byID[p.id] = p
	h.spares.live--
	h.spares.up--
	h.on(p).Adopt(old, launch.Start{StartProc: *s, Label: p.Label})
	h.catchUp(p)
	return p
}

// endSpares: only they are left.
func (h *Head) endSpares() {
	if h.spares.ended {
		return
	}
	h.spares.ended, h.ending = true, true
	h.server.Ending("it is over")
	var list []*proc
	for _, p := range h.procs.list {
		if p.came == launch.Spare {
			list = append(list, p)
		}
	}
	h.killIn(spareGrace, list)
}
