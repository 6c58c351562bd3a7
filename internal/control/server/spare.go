// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"maps"
	"slices"

	"gompi/internal/base/wire"
	"gompi/internal/control/head"
	"gompi/internal/control/protocol"
)

// spares is the processes that wait for a change to take them, in slots that are reserved and not
// bound. Server.mu guards it.
type spares struct {
	argv []string // of all
	last uint32
	list map[uint32]*spare // by number, which is the serial of its name
}

// spare is one spare process.
type spare struct {
	host, reservation uint32
	pid               int // for people; 0: it does not run yet
}

// AddSpares reserves slots for processes that run argv before a change needs them, on the hosts
// with the fewest spares for their slots. The caller starts each with the Token of the id whose
// serial is its Spare, the number of its slot. The id of a spare belongs to no job until a change
// takes the spare. Then Config.Launch has a StartProc with that serial as Spare: the launcher does
// not start the process, but calls it by its new id from then on.
func (s *Server) AddSpares(argv []string, n int) ([]protocol.StartProc, error) {
	var list []protocol.StartProc
	for range n {
		p, err := s.addSpare(argv)
		if err != nil {
			for _, p := range list {
				s.SpareGone(p.Proc)
			}
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

func (s *Server) addSpare(argv []string) (protocol.StartProc, error) {
	s.mu.Lock()
	has := map[uint32]int{}
	for _, x := range s.spares.list {
		has[x.host]++
	}
	host, ok := s.head.SpareHost(has)
	s.mu.Unlock()
	if !ok {
		return protocol.StartProc{}, protocol.Refused("no host of the job is left")
	}
	r, err := s.reserveOn(host, 1)
	if err != nil {
		return protocol.StartProc{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spares.list == nil {
		s.spares.list = map[uint32]*spare{}
	}
	s.spares.last++
	s.spares.list[s.spares.last] = &spare{host: host, reservation: r}
	return protocol.StartProc{Proc: wire.ProcID{Serial: s.spares.last}, Argv: argv, Size: 1, Host: host, Spare: r}, nil
}

// SpareRuns tells that p, an id from AddSpares, runs and may be taken.
func (s *Server) SpareRuns(p wire.ProcID, pid int, argv []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spares.argv = argv
	if x := s.spares.list[p.Serial]; x != nil {
		x.pid = pid
	}
}

// SpareGone tells that p has ended, or will not run. If it was taken meanwhile its slot is that of
// the process that it has become, and stays.
func (s *Server) SpareGone(p wire.ProcID) {
	s.step(func() {
		if x := s.spares.list[p.Serial]; x != nil {
			delete(s.spares.list, p.Serial)
			s.head.Unreserve([]head.Place{{Host: x.host, Count: 1, Reservation: x.reservation}})
		}
	})
}

// sparePlace returns the slot of a spare.
type sparePlace struct{ host, reservation uint32 }

// useSpares gives newcomers the slots of spares, and returns the ids of these spares.
func (s *Server) useSpares(l *head.Launch) map[sparePlace]uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	numbers, waiting := map[sparePlace]uint32{}, map[uint32][]uint32{}
	for _, n := range slices.Sorted(maps.Keys(s.spares.list)) {
		if x := s.spares.list[n]; x.pid != 0 {
			waiting[x.host] = append(waiting[x.host], x.reservation)
			numbers[sparePlace{x.host, x.reservation}] = n
		}
	}
	for host, list := range waiting {
		left := s.head.UseSpares(l, host, s.spares.argv, list)
		for _, r := range list[:len(list)-len(left)] {
			delete(s.spares.list, numbers[sparePlace{host, r}])
		}
	}
	return numbers
}

// Spares lists the spares that wait, by id.
func (s *Server) Spares() (list []protocol.ProcInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r, x := range s.spares.list {
		if x.pid != 0 {
			list = append(list, protocol.ProcInfo{Proc: wire.ProcID{Serial: r}, Name: fmt.Sprintf("spare.%d", r), Size: 1, PID: x.pid, State: protocol.Spare})
		}
	}
	slices.SortFunc(list, func(a, b protocol.ProcInfo) int { return int(int64(a.Proc.Serial) - int64(b.Proc.Serial)) })
	return list
}
