// SPDX-License-Identifier: Apache-2.0

package onehost

import (
	"slices"

	"gompi/internal/control"
	"gompi/internal/head"
	"gompi/internal/wire"
)

// spareHost is where spares are: their descriptors are that host's.
const spareHost = 0

// spares are the processes that wait for a change to take them, by the numbers of
// their places' reservations. Guarded by Server.mu.
type spares struct {
	argv    []string // of all
	waiting []uint32
}

// AddSpares takes places for processes that run argv, before a change needs them. The
// caller starts each with the Token of its name, which is of no job until it is taken:
// then Config.Launch has a StartProc with the number of the place as Spare, and does
// not start it but knows it by its new name from then on.
func (s *Server) AddSpares(argv []string, n int) ([]control.StartProc, error) {
	var list []control.StartProc
	for range n {
		r, err := s.reserveOn(spareHost, 1)
		if err != nil {
			for _, p := range list {
				s.SpareGone(p.Proc)
			}
			return nil, err
		}
		list = append(list, control.StartProc{Proc: wire.ProcID{Serial: r}, Argv: argv, Size: 1, Spare: r})
	}
	return list, nil
}

// SpareRuns: p, which AddSpares has named, may be taken.
func (s *Server) SpareRuns(p wire.ProcID, argv []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spares.argv = argv
	s.spares.waiting = append(s.spares.waiting, p.Serial)
}

// SpareGone: p has ended, or will not run. If it was taken meanwhile, that is the
// place of the one which it has become, and stays.
func (s *Server) SpareGone(p wire.ProcID) {
	s.step(func() {
		s.spares.waiting = slices.DeleteFunc(s.spares.waiting, func(r uint32) bool { return r == p.Serial })
		s.head.Unreserve([]head.Place{{Host: spareHost, Count: 1, Reservation: p.Serial}})
	})
}

// useSpares gives newcomers the places of spares.
func (s *Server) useSpares(l *head.Launch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.spares.waiting) > 0 {
		s.spares.waiting = s.head.UseSpares(l, spareHost, s.spares.argv, s.spares.waiting)
	}
}
