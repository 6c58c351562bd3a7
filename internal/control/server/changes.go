// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/head"
	"gompi/internal/control/protocol"
)

// Launch is a list of newcomers to start.
type Launch struct {
	Op    uint32 // the operation that they come by
	Procs []protocol.StartProc
	// Group says which of the groups they are, in which newcomers start; nil: all.
	Group *head.Start
}

// DiscardGrace is how long the newcomers of a change that does not happen may take to end by
// themselves.
const DiscardGrace = 2 * time.Second

// launch starts the newcomers of an operation, or of a spawn.
func (s *Server) launch(l *head.Launch) {
	spares := s.useSpares(l)
	err := s.reserveAll(l.Places)
	var procs []protocol.StartProc
	if err == nil {
		s.step(func() { procs = s.head.Bind(l) })
		if procs == nil {
			return // they are not wanted any more
		}
		for i := range procs {
			if p := &procs[i]; p.Spare != 0 {
				p.Spare = spares[sparePlace{p.Host, p.Spare}]
			}
		}
		switch {
		case l.OfSpawn():
			err = s.cfg.Start(procs)
		case l.InGroups():
			s.step(func() { s.head.Begin(l, procs) })
			return
		default:
			err = s.cfg.Launch(&Launch{Op: l.Op, Procs: procs})
		}
	}
	s.step(func() { s.head.Launched(l, err) })
}

// start starts a group of newcomers.
func (s *Server) start(g *head.Start) {
	err := s.cfg.Launch(&Launch{Op: g.Op, Procs: g.Procs, Group: g})
	s.step(func() { s.head.Started(g, err) })
}

// fate returns the function of Config for what happens to processes; nil: there is none.
func (s *Server) fate(f head.Fate) func([]wire.ProcID) {
	switch f {
	case head.Discarded:
		return s.cfg.Discard
	case head.Kept:
		return s.cfg.Kept
	case head.Leaves:
		return s.cfg.Leave
	case head.IsLate:
		return s.cfg.Terminate
	case head.Stays:
		return s.cfg.Stay
	case head.MainIs:
		return s.cfg.Main
	}
	return nil
}

// alarm wakes the head at its next deadline. Server.mu guards it.
type alarm struct {
	timer *time.Timer // nil: none was needed so far
	at    time.Duration
	set   bool
}

// setAlarm follows the head's next deadline; mu is held.
func (s *Server) setAlarm() {
	at, ok := s.head.Next()
	a := &s.alarm
	switch {
	case !ok:
		a.stop()
	case a.set && a.at == at:
	default:
		a.at, a.set = at, true
		wait := max(0, at-s.cfg.Now())
		if a.timer == nil {
			a.timer = time.AfterFunc(wait, s.tick)
		} else {
			a.timer.Reset(wait)
		}
	}
}

func (a *alarm) stop() {
	if a.set {
		a.set = false
		a.timer.Stop()
	}
}

// tick lets the head act on its deadlines, when the alarm rings.
func (s *Server) tick() {
	s.step(func() {
		if s.alarm.set = false; !s.closed {
			s.head.Tick()
		}
	})
}
